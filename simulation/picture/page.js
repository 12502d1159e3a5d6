'use strict';
(() => {
  const $ = id => document.getElementById(id);
  const view = $('view'), svg = $('picture'), heads = $('heads'), about = $('about'), find = $('find');
  const at = svg.dataset.at.split(' ').map(Number);
  const room = svg.dataset.room.split(' ').map(r => r.split(',').map(Number));
  const noteRoom = Number(svg.dataset.note);
  const pitch = 17, top0 = 18, axisWidth = 78, lostFall = 12, noteGap = 30;
  const events = [...svg.querySelectorAll('.e')], arrows = [...svg.querySelectorAll('.m')];
  const lives = [...svg.querySelectorAll('.life')], spans = [...svg.querySelectorAll('.s')], dues = [...svg.querySelectorAll('.due')];
  const notes = [...svg.querySelectorAll('.note')], headGroups = [...heads.querySelectorAll('.head')];
  const axis = svg.querySelector('.axis');
  const num = (el, key) => Number(el.dataset[key]);
  const set = (el, values) => { for (const k in values) el.setAttribute(k, values[k]); };
  const make = (name, values, text) => {
    const el = document.createElementNS('http://www.w3.org/2000/svg', name);
    set(el, values);
    if (text !== undefined) el.textContent = text;
    return el;
  };

  // What shows.

  const kindsOff = new Set([...document.querySelectorAll('[data-kind]')].filter(b => !b.checked).map(b => b.dataset.kind));
  const lanesOff = new Set();
  const kindOf = el => /\bk-(\w+)/.exec(el.getAttribute('class'))[1].replace('timer', 'deliver');
  for (const el of [...events, ...arrows]) {
    el.kind = kindOf(el);
    el.first = num(el, el.dataset.r ? 'r' : 'a');
    el.last = el.dataset.b ? num(el, 'b') : el.first;
  }
  const laneOff = el => lanesOff.has(el.dataset.l) || lanesOff.has(el.dataset.to);
  const shows = el => el.classList.contains('broken') || !kindsOff.has(el.kind) && !laneOff(el);

  // Where it stands.

  let Y = [], X = [], width = 0, height = 0, zoom = 1, axisRows = [];
  const pause = ms => ms >= 5000 ? 22 : ms >= 1000 ? 14 : ms >= 100 ? 5 : 0;
  const seconds = ms => ms % 1000 === 0 && ms >= 10000 ? ms / 1000 + ' s'
    : Math.floor(ms / 1000) + '.' + String(ms % 1000).padStart(3, '0') + ' s';

  function layout() {
    const used = new Array(at.length).fill(false);
    for (const el of events) if (shows(el)) used[num(el, 'r')] = true;
    for (const el of arrows) if (shows(el)) {
      used[num(el, 'a')] = true;
      if (el.dataset.b) used[num(el, 'b')] = true;
    }
    let x = axisWidth;
    X = room.map(([left, right], i) => {
      if (lanesOff.has(String(i))) return x;
      x += left + right;
      return x - right;
    });
    width = x;
    let y = top0, last = 0;
    axisRows = [];
    Y = at.map((t, i) => {
      if (!used[i]) return y;
      const gap = t - last;
      y += pause(gap);
      const here = y;
      if (t !== last || !axisRows.length) axisRows.push([t, here, gap]);
      last = t;
      y += pitch;
      return here;
    });
    const end = y;
    height = end + pitch;
    place(used, end);
    resize();
  }

  function drawAxis(from, til) {
    const all = [make('rect', { class: 'back', x: 0, y: 0, width: axisWidth - 11, height }),
      make('line', { class: 'spine', x1: axisWidth - 10, x2: axisWidth - 10, y1: top0 - 10, y2: height - pitch })];
    for (const [t, y, gap] of axisRows) {
      if (y < from || y > til) continue;
      const g = make('g', { transform: `translate(0,${y})` });
      g.append(make('line', { class: 'hair', x1: axisWidth - 13, x2: width }), make('text', { x: axisWidth - 16, y: 3.5 }, seconds(t)));
      if (gap >= 1000) {
        const up = pause(gap) / 4;
        g.append(make('text', { class: 'gap', x: axisWidth - 16, y: -11 - up }, '+' + seconds(gap)),
          make('path', { class: 'gap', d: `M${axisWidth - 14} ${-9 - up}l8 -4m-8 7l8 -4` }));
      }
      all.push(g);
    }
    axis.replaceChildren(...all);
  }

  function yAt(t, used, end) {
    let before = -1;
    for (let i = 0; i < at.length; i++) {
      if (!used[i]) continue;
      if (at[i] > t) return before < 0 ? Y[i] : Y[before] + (Y[i] - Y[before]) * (t - at[before]) / (at[i] - at[before]);
      before = i;
    }
    return end;
  }

  function place(used, end) {
    for (const el of events) {
      el.classList.toggle('off', laneOff(el) && !el.classList.contains('broken'));
      if (el.classList.contains('wide')) {
        el.querySelector('line').setAttribute('x2', width);
        set(el, { transform: `translate(0,${Y[num(el, 'r')]})` });
      } else set(el, { transform: `translate(${X[num(el, 'l')]},${Y[num(el, 'r')]})` });
    }
    for (const el of arrows) {
      el.classList.toggle('off', laneOff(el));
      const x1 = X[num(el, 'l')], y1 = Y[num(el, 'a')];
      let x2 = X[num(el, 'to')], y2 = y1 + lostFall;
      if (el.dataset.b) y2 = Y[num(el, 'b')]; else x2 = (x1 + x2) / 2;
      for (const line of el.querySelectorAll('line')) set(line, { x1, y1, x2, y2 });
    }
    for (const el of lives) {
      el.classList.toggle('off', laneOff(el));
      const x = X[num(el, 'l')], a = num(el, 'a');
      set(el, { x1: x, x2: x, y1: a ? Y[a] : top0 - 10, y2: Y[num(el, 'b')] });
    }
    for (const el of spans) {
      el.classList.toggle('off', laneOff(el));
      const y1 = Y[num(el, 'a')], y2 = el.dataset.t ? yAt(num(el, 't'), used, end) : Y[num(el, 'b')];
      let x = X[num(el, 'l')] + num(el, 'dx');
      if (el.dataset.to) {
        const to = X[num(el, 'to')];
        set(el.querySelector('.from'), { x1: x, x2: to, y1, y2: y1 });
        set(el.querySelector('.til'), { x1: x, x2: to, y1: y2, y2 });
        x = to - Math.min(24, (to - x) / 2);
      } else for (const line of el.querySelectorAll('line')) set(line, { x1: x, x2: x, y1, y2 });
      for (const rect of el.querySelectorAll('rect')) set(rect, { x: x - Number(rect.getAttribute('width')) / 2, y: y1, height: Math.max(y2 - y1, 3) });
    }
    for (const el of dues) {
      el.classList.toggle('off', laneOff(el));
      set(el, { transform: `translate(${X[num(el, 'l')] + num(el, 'dx')},${yAt(num(el, 't'), used, end)})` });
    }
    for (const el of headGroups) {
      el.classList.toggle('off', laneOff(el));
      set(el, { transform: `translate(${X[num(el, 'l')]},15)` });
    }
    let free = 0;
    for (const el of notes) {
      const y = Y[num(el, 'r')], l = num(el, 'l'), x = l < 0 ? width - 6 : X[l];
      const top = Math.max(free, y - 18);
      free = top + num(el, 'h') + 10;
      set(el.querySelector('.lead'), { d: `M${x} ${y - pitch / 2}H${width + 6}L${width + noteGap} ${top + 16}` });
      const spot = el.querySelector('.spot');
      if (spot) set(spot, { cx: x, cy: y });
      set(el.querySelector('.box'), { transform: `translate(${width + noteGap},${top})` });
    }
    height = Math.max(height, free) + 24;
    cull();
  }

  // Scroll and zoom.

  function resize() {
    const w = width + noteRoom;
    set(svg, { viewBox: `0 0 ${w} ${height}`, width: w * zoom, height: height * zoom });
    set(heads, { viewBox: `0 0 ${w} 36`, width: w * zoom, height: 36 * zoom });
    slide();
  }
  // cull draws only what is near the part that shows: a long run stays quick.
  const drawn = [...events, ...arrows];
  for (const el of drawn) { el.far = true; el.classList.add('far'); }
  let everything = false;
  function cull() {
    const from = (view.scrollTop - 600) / zoom, til = (view.scrollTop + view.clientHeight + 600) / zoom;
    if (everything) drawAxis(0, height); else drawAxis(from, til);
    for (const el of drawn) {
      const far = !everything && (Y[el.first] > til || Y[el.last] < from);
      if (el.far !== far) { el.far = far; el.classList.toggle('far', far); }
    }
  }
  addEventListener('beforeprint', () => { everything = true; cull(); });
  addEventListener('afterprint', () => { everything = false; cull(); });
  addEventListener('resize', () => cull());
  const slide = () => set(axis, { transform: `translate(${view.scrollLeft / zoom},0)` });
  let sliding = false;
  view.addEventListener('scroll', () => {
    if (sliding) return;
    sliding = true;
    requestAnimationFrame(() => { sliding = false; slide(); cull(); });
  }, { passive: true });

  function zoomTo(z, px, py) {
    z = Math.min(4, Math.max(.1, z));
    if (px === undefined) { px = view.clientWidth / 2; py = view.clientHeight / 2; }
    const x = (view.scrollLeft + px) / zoom, y = (view.scrollTop + py) / zoom;
    zoom = z;
    resize();
    view.scrollLeft = x * z - px;
    view.scrollTop = y * z - py;
    cull();
  }
  const fit = () => { zoomTo(Math.min(1.4, (view.clientWidth - 4) / (width + noteRoom))); view.scrollLeft = 0; };
  view.addEventListener('wheel', e => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    const box = view.getBoundingClientRect();
    zoomTo(zoom * Math.exp(-e.deltaY / 400), e.clientX - box.left, e.clientY - box.top);
  }, { passive: false });
  let drag = null, dragged = false;
  view.addEventListener('pointerdown', e => {
    dragged = false;
    if (e.button === 0 && e.pointerType === 'mouse') drag = { x: e.clientX, y: e.clientY, left: view.scrollLeft, top: view.scrollTop };
  });
  addEventListener('pointermove', e => {
    if (!drag) return;
    const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
    if (!dragged && Math.abs(dx) + Math.abs(dy) < 5) return;
    dragged = true;
    view.classList.add('drag');
    view.scrollLeft = drag.left - dx;
    view.scrollTop = drag.top - dy;
  });
  addEventListener('pointerup', () => { drag = null; view.classList.remove('drag'); });

  // What is pointed at.

  let kept = null;
  const hint = about.firstElementChild;
  const tell = el => {
    if (!el) { about.replaceChildren(hint); return; }
    const text = el.querySelector('title').textContent, cut = text.indexOf('\n');
    const head = document.createElement('b');
    head.textContent = cut < 0 ? text : text.slice(0, cut);
    about.replaceChildren(head, cut < 0 ? '' : text.slice(cut));
    about.scrollTop = 0;
  };
  const thing = e => e.target.closest && e.target.closest('.e, .m, .s, .due, .note');
  svg.addEventListener('pointerover', e => { if (!drag) tell(thing(e) || kept); });
  svg.addEventListener('pointerleave', () => tell(kept));
  svg.addEventListener('click', e => { if (!dragged) keep(thing(e)); });

  function keep(el, reveal) {
    if (kept) { kept.classList.remove('on'); kept.removeAttribute('tabindex'); }
    kept = el;
    tell(el);
    if (!el) return;
    el.classList.add('on');
    set(el, { tabindex: -1 });
    if (reveal) show(el);
    cull();
    el.focus({ preventScroll: true });
  }
  function show(el) {
    const row = el.dataset.r || el.dataset.a;
    const y = Y[Number(row)] * zoom + heads.clientHeight, x = el.dataset.l && el.dataset.l >= 0 ? X[Number(el.dataset.l)] * zoom : view.scrollLeft + 100;
    if (y < view.scrollTop + 60 || y > view.scrollTop + view.clientHeight - 60) view.scrollTop = y - view.clientHeight / 2;
    if (x < view.scrollLeft + 150 || x > view.scrollLeft + view.clientWidth - 150) view.scrollLeft = x - view.clientWidth / 2;
  }
  const inOrder = [...events, ...arrows].sort((a, b) => num(a, 'n') - num(b, 'n'));
  function step(by, among) {
    const all = among || inOrder.filter(shows);
    if (!all.length) return;
    let i = all.indexOf(kept);
    if (i < 0 && kept && kept.dataset.n) i = all.findIndex(el => num(el, 'n') >= num(kept, 'n')) - (by > 0 ? 1 : 0);
    keep(all[(i + by + all.length) % all.length], true);
  }
  // follow goes to the other end of a message.
  function follow() {
    if (!kept) return;
    const mine = arrows.filter(shows);
    if (kept.classList.contains('m')) {
      const row = kept.dataset.b || kept.dataset.a;
      const next = events.find(el => shows(el) && el.dataset.r === row && el.dataset.l === kept.dataset.to);
      if (next) keep(next, true);
      return;
    }
    const next = mine.find(m => m.dataset.a === kept.dataset.r && m.dataset.l === kept.dataset.l);
    if (next) keep(next, true);
  }

  // Find.

  let found = [], typing = 0;
  function search() {
    const words = find.value.toLowerCase().trim();
    for (const el of found) el.classList.remove('found');
    found = words ? inOrder.filter(el => shows(el) && el.querySelector('title').textContent.toLowerCase().includes(words)) : [];
    for (const el of found) el.classList.add('found');
    svg.classList.toggle('finding', !!words);
    $('count').textContent = words ? found.length + ' found' : '';
  }
  find.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(search, 120); });
  find.addEventListener('keydown', e => {
    if (e.key === 'Enter') { search(); step(e.shiftKey ? -1 : 1, found); }
    if (e.key === 'Escape') { find.value = ''; search(); view.focus(); }
    e.stopPropagation();
  });

  // Tools and keys.

  let broke = -1;
  const goBroken = () => {
    if (!notes.length) return;
    broke = (broke + 1) % notes.length;
    keep(notes[broke], true);
    view.scrollLeft = view.scrollWidth;
  };
  $('broken').hidden = !notes.length;
  $('broken').addEventListener('click', goBroken);
  $('tools').addEventListener('change', e => {
    const { kind, lane } = e.target.dataset, off = !e.target.checked;
    if (kind === undefined && lane === undefined) return;
    const set = kind === undefined ? lanesOff : kindsOff, what = kind === undefined ? lane : kind;
    if (off) set.add(what); else set.delete(what);
    if (kind !== undefined) svg.classList.toggle('no-' + kind, off);
    const middle = view.scrollTop + view.clientHeight / 2, row = Y.findIndex(y => y * zoom >= middle);
    layout();
    if (row >= 0) view.scrollTop = view.scrollTop < 40 ? 0 : Y[row] * zoom - view.clientHeight / 2;
    cull();
    search();
    if (kept && kept.dataset.n && kept.kind && shows(kept)) show(kept);
  });
  $('tools').addEventListener('click', e => {
    const how = e.target.dataset.zoom;
    if (how === 'in') zoomTo(zoom * 1.25);
    if (how === 'out') zoomTo(zoom / 1.25);
    if (how === 'fit') fit();
  });
  const keys = {
    j: () => step(1), k: () => step(-1), n: () => step(1, found), N: () => step(-1, found), Enter: follow, b: goBroken,
    '+': () => zoomTo(zoom * 1.25), '=': () => zoomTo(zoom * 1.25), '-': () => zoomTo(zoom / 1.25), 0: fit,
    '/': () => find.focus(), Escape: () => { keep(null); for (const d of document.querySelectorAll('details')) d.open = false; view.focus(); },
    ArrowLeft: () => { view.scrollLeft -= 60; }, ArrowRight: () => { view.scrollLeft += 60; },
    ArrowUp: () => { view.scrollTop -= 60; }, ArrowDown: () => { view.scrollTop += 60; },
  };
  addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('input, button, summary') && e.key !== 'Escape') return;
    if (!Object.hasOwn(keys, e.key)) return;
    e.preventDefault();
    keys[e.key]();
  });

  layout();
  fit();
  if (zoom < .85) { zoomTo(.85); view.scrollLeft = 0; }
  view.scrollTop = 0;
})();

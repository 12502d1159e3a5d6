package compressed_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley/sessionlog"
	"github.com/parleyrun/parley/sessionlog/compressed"
)

const (
	header  = `{"type":"session","version":0,"id":"c","createdAt":1,"delegationDepth":0}` + "\n"
	records = `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}` + "\n"
	most    = 1 << 20
)

// frames compresses every text as a frame of its own, with its checksum.
func frames(t testing.TB, texts ...string) (out []byte) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	defer func() { _ = encoder.Close() }()
	for _, text := range texts {
		out = encoder.EncodeAll([]byte(text), out)
	}
	return out
}

// writes are records that do not compress to nothing.
func writes() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `{"type":"todo/write","seq":%d,"time":%d,"data":{"todos":[{"content":"%x","status":"pending"}]}}`+"\n", 1+i, i*i*i, i*7919)
	}
	return b.String()
}

// L-039: whole frames are a plain log; one that was cut at any byte of its last
// frame is refused, and says where it was whole.
func TestL039Frames(t *testing.T) {
	packed := frames(t, header, records, writes())
	require.True(t, compressed.Is(packed[:compressed.MagicLength]))
	require.False(t, compressed.Is([]byte(header)))
	plain, err := compressed.Decode(packed, most)
	require.NoError(t, err)
	require.Equal(t, header+records+writes(), string(plain))
	line, err := compressed.DecodeHeader(packed[:len(packed)-5], most)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(header, "\n"), string(line))

	whole := len(frames(t, header, records))
	for n := len(packed) - 1; n > whole; n-- {
		_, err := compressed.Decode(packed[:n], most)
		var corrupt *sessionlog.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.ErrorContains(t, err, fmt.Sprintf("frame 3 is not whole; cut the file to its first %d bytes if the %d bytes from there may be lost", whole, n-whole))
	}
	plain, err = compressed.Decode(packed[:whole], most)
	require.NoError(t, err, "as it was told")
	require.Equal(t, header+records, string(plain))
}

// L-039: what no cut can leave is damage.
func TestL039BadFrames(t *testing.T) {
	flipped := frames(t, header, records, writes())
	flipped[len(flipped)-1] ^= 1 // of the checksum
	for name, c := range map[string]struct {
		log  []byte
		text string
	}{
		"half a record":         {frames(t, header, records[:20], records[20:]), "frame 2, at byte"},
		"half a header":         {frames(t, header[:20], header[20:]), "frame 1, at byte 0: its last record is not whole"},
		"more than a header":    {frames(t, header+records), "the header and nothing else"},
		"an empty frame":        {append(frames(t, header), 0x28, 0xB5, 0x2F, 0xFD, 0x20, 0, 1, 0, 0), "frame 2"},
		"another checksum":      {flipped, "frame 3"},
		"plain behind":          {append(frames(t, header), records...), "frame 2"},
		"a frame of no content": {append(frames(t, header), 0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 0), "it holds nothing of a log"},
		"a block of no kind":    {append(frames(t, header), 0x28, 0xB5, 0x2F, 0xFD, 0x20, 0, 7, 0, 0), "frame 2"},
	} {
		_, err := compressed.Decode(c.log, most)
		var corrupt *sessionlog.CorruptError
		require.ErrorAs(t, err, &corrupt, name)
		require.ErrorContains(t, err, c.text, name)
	}
	_, err := compressed.DecodeHeader(nil, most)
	require.Error(t, err)
}

// A small file that holds much is not unpacked beyond the limit, however it is
// divided.
func TestFramesAreBounded(t *testing.T) {
	half := strings.Repeat("x", most/2) + "\n"
	for _, log := range [][]byte{frames(t, header, half+half), frames(t, header, half, half), frames(t, header, strings.Repeat(half, 40))} {
		require.Less(t, len(log), most/50)
		_, err := compressed.Decode(log, most)
		var limit *sessionlog.LimitError
		require.ErrorAs(t, err, &limit)
		require.Equal(t, int64(most), limit.Most)
	}
}

// Whatever the bytes: what is taken are whole lines within the limit, the first
// of them alone in its frame.
func FuzzDecode(f *testing.F) {
	f.Add(frames(f, header, records))
	f.Add(frames(f, "\n", "a\nb\n", "c\n"))
	f.Add(frames(f, header, records, writes()))
	f.Fuzz(func(t *testing.T, packed []byte) {
		const most = 1 << 16
		line, headErr := compressed.DecodeHeader(packed, most)
		plain, err := compressed.Decode(packed, most)
		for _, err := range []error{headErr, err} {
			var corrupt *sessionlog.CorruptError
			var limit *sessionlog.LimitError
			if err != nil && !errors.As(err, &corrupt) && !errors.As(err, &limit) {
				t.Fatalf("an error of no type: %v", err)
			}
		}
		if err != nil || len(packed) == 0 {
			return
		}
		if !bytes.HasSuffix(plain, []byte("\n")) || len(plain) > most || headErr != nil || !bytes.HasPrefix(plain, append(bytes.Clone(line), '\n')) {
			t.Fatalf("%q holds %q, its header is %q, %v", packed, plain, line, headErr)
		}
	})
}

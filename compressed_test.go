package parley_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/parleyrun/parley"
	"github.com/parleyrun/parley/messages"
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

// compressed is the log of a session in three frames.
func compressed(t testing.TB, id string) []byte {
	t.Helper()
	header, records, _ := strings.Cut(logOf(id), "\n")
	return frames(t, header+"\n", records, writes(1, 40))
}

// writes are records that do not compress to nothing.
func writes(first, count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `{"type":"todo/write","seq":%d,"time":%d,"data":{"todos":[{"content":"%x","status":"pending"}]}}`+"\n", first+i, i*i*i, i*7919)
	}
	return b.String()
}

// L-039: a compressed log is taken for what it holds and given back plain, and
// one that was cut at any byte of its last frame is refused, with the place.
func TestACompressedLogIsImported(t *testing.T) {
	t.Parallel()
	packed := compressed(t, "c")
	plain := logOf("c") + writes(1, 40)
	node, _ := memoryNode(t)
	row, err := node.Import(t.Context(), "", bytes.NewReader(packed))
	require.NoError(t, err)
	require.Equal(t, int64(41), row.GetEvents())
	require.Equal(t, plain, export(t, node, "c"))
	_, err = node.Import(t.Context(), "", bytes.NewReader(packed))
	require.Equal(t, messages.SessionExists, messages.CodeOf(err))

	whole := len(packed) - len(frames(t, writes(1, 40)))
	empty, j := memoryNode(t)
	for n := len(packed) - 1; n > whole; n-- {
		_, err := empty.Import(t.Context(), "", bytes.NewReader(packed[:n]))
		require.Equal(t, messages.BadLog, messages.CodeOf(err), "%d bytes: %v", n, err)
		require.ErrorContains(t, err, fmt.Sprintf("frame 3 is not whole; cut the file to its first %d bytes if the %d bytes from there may be lost", whole, n-whole))
	}
	nothing(t, j)
	_, err = empty.Import(t.Context(), "", bytes.NewReader(packed[:whole]))
	require.NoError(t, err, "as it was told")
	require.Equal(t, logOf("c"), export(t, empty, "c"))
}

// L-039: what no cut can leave is damage.
func TestABadCompressedLogIsRefused(t *testing.T) {
	t.Parallel()
	header, records, _ := strings.Cut(logOf("c"), "\n")
	flipped := compressed(t, "c")
	flipped[len(flipped)-1] ^= 1 // of the checksum
	for name, c := range map[string]struct {
		log  []byte
		text string
	}{
		"half a record":         {frames(t, header+"\n", records[:20], records[20:]), "frame 2, at byte"},
		"half a header":         {frames(t, header[:20], header[20:]+"\n"), "frame 1, at byte 0: its last record is not whole"},
		"more than a header":    {frames(t, header+"\n"+records), "the header and nothing else"},
		"an empty frame":        {frames(t, header+"\n", ""), "frame 2"},
		"another checksum":      {flipped, "frame 3"},
		"plain behind":          {append(frames(t, header+"\n"), records...), "frame 2"},
		"a frame of no content": {append(frames(t, header+"\n"), 0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 0), "it holds nothing of a log"},
		"another seq":           {frames(t, header+"\n", writes(1, 1)), "line 2: seq gap: expected 0"},
	} {
		node, j := memoryNode(t)
		_, err := node.Import(t.Context(), "", bytes.NewReader(c.log))
		require.Equal(t, messages.BadLog, messages.CodeOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.text, name)
		nothing(t, j)
	}
}

// A small file that holds much is not unpacked beyond the limit, however it is
// divided.
func TestCompressedLogsAreBounded(t *testing.T) {
	t.Parallel()
	header, _, _ := strings.Cut(logOf("c"), "\n")
	half := strings.Repeat("x", parley.ImportBytesMax/2) + "\n"
	for _, log := range [][]byte{frames(t, header+"\n", half+half), frames(t, header+"\n", half, half)} {
		require.Less(t, len(log), parley.ImportBytesMax/100)
		node, j := memoryNode(t)
		_, err := node.Import(t.Context(), "", bytes.NewReader(log))
		require.Equal(t, messages.TooLarge, messages.CodeOf(err), err)
		nothing(t, j)
	}
}

// Whatever the bytes: what is taken as compressed are whole lines within the
// limit, the first of them alone in its frame.
func FuzzInflate(f *testing.F) {
	header, records, _ := strings.Cut(logOf("c"), "\n")
	f.Add(frames(f, header+"\n", records))
	f.Add(frames(f, "\n", "a\nb\n", "c\n"))
	f.Add(compressed(f, "c"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		plain, err := parley.Inflate(packed)
		if err != nil {
			require.Contains(t, []messages.Code{messages.BadLog, messages.TooLarge}, messages.CodeOf(err), err)
			return
		}
		if len(packed) > 0 && !bytes.HasSuffix(plain, []byte("\n")) || len(plain) > parley.ImportBytesMax {
			t.Fatalf("%q holds %q", packed, plain)
		}
		again, err := parley.Inflate(append(bytes.Clone(packed), packed...))
		if len(packed) > 0 && err == nil && string(again) != string(plain)+string(plain) {
			t.Fatalf("twice %q is %q", plain, again)
		}
	})
}

package parley

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/parleyrun/parley/messages"
)

// A compressed log (L-039) is a row of Zstandard frames, each complete in
// itself: the first holds the header line, every other the records of one write.

var frameMagic = []byte{0x28, 0xB5, 0x2F, 0xFD}

// isCompressed says whether a file starts like a compressed log.
func isCompressed(text []byte) bool { return bytes.HasPrefix(text, frameMagic) }

// inflate makes a plain log of a compressed one. Like a plain log that a crash
// has torn, one whose last frame is not whole is refused rather than cut. Its
// errors are BAD_LOG with the frame that is wrong, and TOO_LARGE.
func inflate(packed []byte) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(ImportBytesMax), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	var out []byte
	for at, n := 0, 1; at < len(packed); n++ {
		size, err := frameSize(packed[at:])
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, messages.Refuse(messages.BadLog, "the compressed log cannot be imported: frame %d is not whole; cut the file to its first %d bytes if the %d bytes from there may be lost", n, at, len(packed)-at)
		case err != nil:
			return nil, badFrame(n, at, err)
		}
		before := len(out)
		out, err = decoder.DecodeAll(packed[at:at+size], out)
		switch {
		case errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(out) > ImportBytesMax:
			return nil, messages.Refuse(messages.TooLarge, "the compressed log has more than %d bytes of content, which is the limit of an import", ImportBytesMax)
		case err != nil:
			return nil, badFrame(n, at, err)
		case before == len(out) || out[len(out)-1] != '\n':
			return nil, badFrame(n, at, errors.New("its last record is not whole"))
		case n == 1 && bytes.IndexByte(out, '\n') != len(out)-1:
			return nil, badFrame(n, at, errors.New("it must hold the header and nothing else"))
		}
		at += size
	}
	return out, nil
}

func badFrame(n, at int, err error) error {
	return messages.Refuse(messages.BadLog, "the compressed log cannot be imported: frame %d, at byte %d: %v; restore the file from a copy", n, at, err)
}

// frameSize is how many bytes the frame has that text starts with.
// io.ErrUnexpectedEOF: text ends inside of it.
func frameSize(text []byte) (int, error) {
	const (
		blockHeader = 3
		repeated    = 1 // a block of one byte that stands for many
		reserved    = 3
		checksum    = 4
	)
	var h zstd.Header
	if err := h.Decode(text); err != nil {
		return 0, err
	}
	if h.Skippable {
		return 0, errors.New("it holds nothing of a log")
	}
	for at := h.HeaderSize; ; {
		if len(text)-at < blockHeader {
			return 0, io.ErrUnexpectedEOF
		}
		block := int(text[at]) | int(text[at+1])<<8 | int(text[at+2])<<16
		last, kind, size := block&1 == 1, block>>1&3, block>>3
		switch kind {
		case repeated:
			size = 1
		case reserved:
			return 0, errors.New("it has a block of no known kind")
		}
		if at += blockHeader + size; last {
			if h.HasCheckSum {
				at += checksum
			}
			if at > len(text) {
				return 0, io.ErrUnexpectedEOF
			}
			return at, nil
		}
	}
}

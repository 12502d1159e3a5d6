// Package compressed reads the compressed form of a log (L-039): a row of
// Zstandard frames, each complete in itself, of which the first holds the header
// line and every other the records of one write.
//
// It decides whether frames hold a log as its writer left it. It never judges
// the records themselves, and never decodes more than it is allowed to.
package compressed

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/parleyrun/parley/sessionlog"
)

// MagicLength is how much of a file Is must see.
const MagicLength = 4

// Is says whether a file starts like a compressed log.
func Is(start []byte) bool { return bytes.HasPrefix(start, []byte{0x28, 0xB5, 0x2F, 0xFD}) }

// Decode makes a plain log of a compressed one. Its errors are a
// *sessionlog.CorruptError, which names the frame that is wrong and, if the log
// was cut inside of its last one, where to cut it; and a *sessionlog.LimitError
// for a log of more than `most` bytes.
func Decode(packed []byte, most int) ([]byte, error) {
	var out []byte
	err := decode(packed, most, func(text []byte) bool {
		out = text
		return true
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DecodeHeader reads the header line, without its line feed, of a compressed log
// of which packed is the beginning. Its errors are those of Decode.
func DecodeHeader(packed []byte, most int) ([]byte, error) {
	var line []byte
	err := decode(packed, most, func(text []byte) bool {
		line = text[:len(text)-1]
		return false
	})
	if line == nil && err == nil {
		err = &sessionlog.CorruptError{Seq: -1, Problem: "it is empty", Remedy: "restore it from a copy"}
	}
	return line, err
}

// decode gives what was decoded so far after each frame, until it is told to
// stop.
func decode(packed []byte, most int, each func(text []byte) bool) error {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(most, 1))), zstd.WithDecoderLowmem(true))
	if err != nil {
		return fmt.Errorf("make a decoder of at most %d bytes: %w", most, err)
	}
	defer decoder.Close()
	var out []byte
	for at, n := 0, 1; at < len(packed); n++ {
		size, err := frameSize(packed[at:])
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return &sessionlog.CorruptError{Seq: -1, Problem: fmt.Sprintf("frame %d is not whole", n),
				Remedy: fmt.Sprintf("cut the file to its first %d bytes if the %d bytes from there may be lost", at, len(packed)-at)}
		case err != nil:
			return badFrame(n, at, err)
		}
		before := len(out)
		out, err = decoder.DecodeAll(packed[at:at+size], out)
		switch {
		case errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) || len(out) > most:
			return &sessionlog.LimitError{Limit: "of its content in bytes", Most: int64(most), Problem: "it is compressed and holds too much"}
		case err != nil:
			return badFrame(n, at, err)
		case before == len(out) || out[len(out)-1] != '\n':
			return badFrame(n, at, errors.New("its last record is not whole"))
		case n == 1 && bytes.IndexByte(out, '\n') != len(out)-1:
			return badFrame(n, at, errors.New("it must hold the header and nothing else"))
		}
		if at += size; !each(out) {
			break
		}
	}
	return nil
}

func badFrame(n, at int, err error) error {
	return &sessionlog.CorruptError{Seq: -1, Problem: fmt.Sprintf("frame %d, at byte %d: %v", n, at, err), Remedy: "restore the file from a copy"}
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

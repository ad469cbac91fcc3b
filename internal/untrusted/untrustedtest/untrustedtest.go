// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untrustedtest has documents that attack a decoder, and functions that limit the memory of decoding.
package untrustedtest

import (
	"encoding/binary"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// AliasBomb returns a YAML mapping of 16 KiB with one field. Parsers that expand aliases expand it to 16 MiB.
func AliasBomb(field string) string {
	return field + ":\n  a: &a " + strings.Repeat("x", 8<<10) + "\n  b: [" + strings.Repeat("*a, ", 2<<10) + "]\n"
}

// UTF16 returns a text in UTF-16 with a byte order mark, which YAML parsers can read.
func UTF16(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

// Allocated returns how many bytes f allocates, including bytes that are released.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Bound fails the test if f allocates more than fixed bytes plus factor times the size of its input. No other code may
// run at the same time.
func Bound(t testing.TB, input, fixed, factor int, f func()) {
	t.Helper()
	limit := fixed + input*factor
	if got := Allocated(f); float64(got) > float64(limit) {
		t.Errorf("reading %d bytes allocates %d, more than %d", input, got, limit)
	}
}

// Peak returns the maximum number of bytes that are in use while f runs, without the bytes that were in use before.
// About a tenth can be bytes that were not collected yet. No other code may run at the same time.
func Peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	before := readHeapSize()
	ended, peak := make(chan struct{}), make(chan uint64)
	go func() {
		highest := before
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				highest = max(highest, readHeapSize())
			case <-ended:
				peak <- max(highest, readHeapSize())
				return
			}
		}
	}()
	f()
	close(ended)
	return <-peak - before
}

// readHeapSize returns the size of all objects that are not collected yet.
func readHeapSize() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// BoundPeak fails the test if f uses more than limit bytes at a time. No other code may run at the same time. On a
// busy machine the collector is late, so f runs up to five times until it stays within the limit.
func BoundPeak(t testing.TB, limit int, f func()) {
	t.Helper()
	var got uint64
	for range 5 {
		if got = Peak(f); got <= uint64(max(limit, 0)) {
			return
		}
	}
	t.Errorf("%d KiB are in use at a time, more than %d", got>>10, limit>>10)
}

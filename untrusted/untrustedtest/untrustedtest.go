// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untrustedtest has documents that attack their reader, and bounds the memory that reading them takes.
package untrustedtest

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"
)

// AliasBomb returns a YAML mapping of 16 KiB with one field, which parsers that expand aliases make 16 MiB of.
func AliasBomb(field string) string {
	return field + ":\n  a: &a " + strings.Repeat("x", 8<<10) + "\n  b: [" + strings.Repeat("*a, ", 2<<10) + "]\n"
}

// UTF16 returns a text in UTF-16 with a byte order mark, which YAML parsers understand.
func UTF16(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

// Allocated returns how many bytes f allocates, whether or not they are released.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Bound fails the test if f allocates more than fixed bytes and factor times the size of its input. Nothing else may
// run at the same time.
func Bound(t testing.TB, input, fixed, factor int, f func()) {
	t.Helper()
	limit := fixed + input*factor
	if got := Allocated(f); float64(got) > float64(limit) {
		t.Errorf("reading %d bytes allocates %d, more than %d", input, got, limit)
	}
}

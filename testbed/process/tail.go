// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"io"
	"os"
	"strings"
)

// tailBytes bounds what is read of a log, however long it is.
const tailBytes = 16 << 10

// tailFile returns the last lines of a file, or the reason why there are none.
func tailFile(path string, lines int) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecisionsAreListed compares the index of docs/decisions with the files: each table is in order, each decision is
// in a table, and the index names the unused numbers.
func TestDecisionsAreListed(t *testing.T) {
	folder := filepath.Join(root(t), "docs", "decisions")
	index := read(t, filepath.Join(folder, "README.md"))
	var files []string
	for _, pattern := range []string{"*.md", "testbed/*.md"} {
		found, err := fs.Glob(os.DirFS(folder), pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return file == "README.md" })
	var listed []string
	for _, row := range regexp.MustCompile(`(?m)^\| \[(\d{4})\]\((\S+)\)`).FindAllStringSubmatch(index, -1) {
		if !strings.HasPrefix(path.Base(row[2]), row[1]+"-") {
			t.Errorf("%s leads to %s", row[1], row[2])
		}
		listed = append(listed, row[2])
	}
	if diff := cmp.Diff(files, listed); diff != "" {
		t.Errorf("files, and the rows of the index (-files +rows):\n%s", diff)
	}
	var numbers []string
	for _, file := range files {
		numbers = append(numbers, path.Base(file)[:4])
	}
	introduction, _, _ := strings.Cut(index, "\n| ")
	for i, last := 1, slices.Max(numbers); fmt.Sprintf("%04d", i) <= last; i++ {
		number := fmt.Sprintf("%04d", i)
		if slices.Contains(numbers, number) == strings.Contains(introduction, number) {
			t.Errorf("%s has to be either a decision or named as unused", number)
		}
	}
}

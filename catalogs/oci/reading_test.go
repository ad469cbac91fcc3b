// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// readingDir and readingCache make this test program the process that is killed.
const readingDir, readingCache = "BELLWETHER_TEST_READING_DIR", "BELLWETHER_TEST_READING_CACHE"

// read reads a catalog of one file, and calls while during the read.
func read(t *testing.T, c *oci.Client, dir string, while func()) error {
	t.Helper()
	source := oci.Source{Directory: dir}
	digest, err := c.Resolve(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	files, err := c.Open(t.Context(), source, digest)
	if err != nil {
		t.Fatal(err)
	}
	return files(func(string, io.Reader) error {
		while()
		return nil
	})
}

func nothing() {}

// TestDigestWhoseReadingKilledTheProcess kills a process while it reads a catalog, as the kernel does when memory is
// exhausted. The process that is started after it must not be killed too.
func TestDigestWhoseReadingKilledTheProcess(t *testing.T) {
	if dir := os.Getenv(readingDir); dir != "" {
		_ = read(t, oci.NewClient(oci.Options{CacheDir: os.Getenv(readingCache)}), dir, func() {
			fmt.Println("reading")
			select {}
		})
		return
	}
	dir, cache := t.TempDir(), t.TempDir()
	writeFile(t, dir+"/c.yaml", "schema: olm.package\nname: p\n")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	child.Env = append(os.Environ(), readingDir+"="+dir, readingCache+"="+cache)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "reading\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	c := oci.NewClient(oci.Options{CacheDir: cache})
	if err := read(t, c, dir, nothing); err != nil {
		t.Errorf("while another process reads it: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()

	for range 3 { // and it stays so
		c = oci.NewClient(oci.Options{CacheDir: cache})
		err = read(t, c, dir, func() { t.Error("it was read again") })
		if !errors.Is(err, oci.ErrReadInterrupted) {
			t.Fatalf("got %v", err)
		}
	}
	other := t.TempDir()
	writeFile(t, other+"/c.yaml", "schema: olm.package\nname: q\n")
	if err := read(t, c, other, nothing); err != nil {
		t.Errorf("another digest: %v", err)
	}

	marks, _ := filepath.Glob(cache + "/*.reading")
	if len(marks) != 1 || !strings.Contains(err.Error(), marks[0]) {
		t.Fatalf("the message %q does not name the file %v", err, marks)
	}
	if err := os.Remove(marks[0]); err != nil {
		t.Fatal(err)
	}
	if err := read(t, c, dir, nothing); err != nil {
		t.Errorf("after the file was removed: %v", err)
	}
}

// TestDigestWhoseDecodingKilledTheProcess kills a process after it has read a catalog, while it decodes the
// catalog's bundles.
func TestDigestWhoseDecodingKilledTheProcess(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	if cache := os.Getenv(readingCache); cache != "" {
		_ = oci.NewClient(oci.Options{CacheDir: cache}).Decode(digest, func() error {
			fmt.Println("decoding")
			select {}
		})
		return
	}
	cache := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	child.Env = append(os.Environ(), readingCache+"="+cache)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "decoding\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	c := oci.NewClient(oci.Options{CacheDir: cache})
	err = c.Decode(digest, func() error {
		t.Error("it was decoded again")
		return nil
	})
	if !errors.Is(err, oci.ErrReadInterrupted) {
		t.Errorf("got %v", err)
	}
	failed := errors.New("failed")
	if err := c.Decode("sha256:1", func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("another digest: got %v", err)
	}
	if marks, _ := filepath.Glob(cache + "/*.reading"); len(marks) != 1 {
		t.Errorf("marks %v", marks)
	}
}

// A process that ends normally, or fails to read, must leave no record that blocks the digest.
func TestReadsThatEnd(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	writeFile(t, dir+"/c.yaml", "schema: olm.package\nname: p\n")
	c := oci.NewClient(oci.Options{CacheDir: cache})
	err := read(t, c, dir, func() {
		if err := read(t, c, dir, nothing); err != nil {
			t.Errorf("twice at a time: %v", err)
		}
		if marks, _ := filepath.Glob(cache + "/*.reading"); len(marks) != 1 {
			t.Errorf("marks %v while it is read", marks)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	leaving := oci.NewClient(oci.Options{CacheDir: cache})
	if err := read(t, leaving, dir, leaving.Close); err != nil {
		t.Fatal(err)
	}
	if marks, _ := filepath.Glob(cache + "/*.reading"); len(marks) != 0 {
		t.Errorf("marks %v are left", marks)
	}
}

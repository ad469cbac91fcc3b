// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
)

// TestInterrupt interrupts a server.
func TestInterrupt(t *testing.T) {
	catalog := t.TempDir()
	err := os.WriteFile(filepath.Join(catalog, "catalog.json"), []byte(catalogtest.Graph("echo", "1.0.0")), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	var complaints bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- root.Main([]string{"bellwether", "catalog", "serve", catalog, "--addr", "127.0.0.1:0"},
			genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: writer, ErrOut: &complaints})
	}()
	if _, err := bufio.NewReader(reader).ReadString('\n'); err != nil { // it serves
		t.Fatal(err)
	}
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != 130 || complaints.String() != "interrupted\n" {
		t.Errorf("it ends with %d and says %q", got, complaints.String())
	}
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/internal/version"
	"github.com/bellwether-dev/bellwether/release/image"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestImagesRun pushes the images of hub, agent and command line to the embedded registry, pulls each back by its
// digest, checks its signature, unpacks it, and runs what is in it.
func TestImagesRun(t *testing.T) {
	pair, err := sign.GenerateKey(sign.ECDSA, nil)
	must(t, err)
	signer, err := sign.NewSigner(pair.Private, func() ([]byte, error) { return nil, nil })
	must(t, err)
	target := image.Target{Client: oci.NewClient(oci.Options{}), Registry: serveRegistry(t) + "/bellwether",
		Signer: signer}
	for _, name := range image.Names {
		t.Run(name, func(t *testing.T) {
			program, err := image.ReadProgram(name, testenv.Binary(t, name), "")
			must(t, err)
			set := func() image.Set {
				s, err := image.NewSet([]image.Program{program},
					func(v1.Platform) (v1.Image, error) { return image.DefaultBase() })
				must(t, err)
				return s
			}
			published, err := target.Publish(t.Context(), set())
			must(t, err)
			if again, err := set().Index.Digest(); err != nil || again.String() != published.Digest {
				t.Errorf("the second image is %s, the first one %s, error %v", again, published.Digest, err)
			}
			source := oci.Source{Image: published.Repository + "@" + published.Digest, Verification: oci.Verification{
				PublicKeys: [][]byte{signer.PublicKey()}}}
			must(t, oci.NewClient(oci.Options{}).Verify(t.Context(), source, published.Digest))
			lists, err := target.Client.SBOMs(t.Context(), source.Image, oci.Access{})
			must(t, err)
			if !containsText(lists, "pkg:golang/k8s.io/api@") || !containsText(lists, "CycloneDX") {
				t.Errorf("no list of the modules among what is attached: %d artifacts", len(lists))
			}
			img, err := target.Client.Pull(t.Context(), source.Image, program.Platform, oci.Access{})
			must(t, err)
			runVersion(t, name, img, program.Version)
		})
	}
}

// runVersion runs a program out of its image, which tells what it is.
func runVersion(t *testing.T, name string, img v1.Image, want version.Info) {
	t.Helper()
	path, err := image.Unpack(img, t.TempDir())
	must(t, err)
	args := []string{"version", "--json"}
	if name == image.Bellwether {
		args = []string{"version", "-o", "json"}
	}
	c := exec.CommandContext(t.Context(), path, args...)
	c.Env = []string{"HOME=" + filepath.Join(filepath.Dir(path), "none"), "TMPDIR=" + os.TempDir()}
	out, err := c.Output()
	must(t, err)
	var got version.Info
	must(t, json.Unmarshal(out, &got))
	if got.Version != want.Version || got.Go != want.Go || got.Version == "" {
		t.Errorf("the program in the image is %+v, want %+v", got, want)
	}
}

func containsText(texts [][]byte, part string) bool {
	for _, text := range texts {
		if strings.Contains(string(text), part) {
			return true
		}
	}
	return false
}

// serveRegistry runs a registry until the test ends, and returns its address.
func serveRegistry(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	root, ready, done := t.TempDir(), make(chan string, 1), make(chan error, 1)
	go func() {
		done <- registry.Serve(ctx, registry.Options{Root: root, Ready: func(addr string) { ready <- addr }})
	}()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
	select {
	case addr := <-ready:
		return addr
	case err := <-done:
		done <- nil
		t.Fatal(err)
		return ""
	}
}

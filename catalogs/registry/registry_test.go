// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/bellwether-dev/bellwether/catalogs/registry"
)

// start runs a registry and returns its address and a function that stops it.
func start(t *testing.T, o registry.Options) (string, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	o.Ready = func(addr string) { ready <- addr }
	go func() { done <- registry.Serve(ctx, o) }()
	stop := func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	select {
	case addr := <-ready:
		return addr, stop
	case err := <-done:
		done <- nil
		t.Fatal(err)
		return "", nil
	}
}

func TestImagesOutliveTheProcess(t *testing.T) {
	root := filepath.Join(t.TempDir(), "registry")
	img, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	addr, stop := start(t, registry.Options{Root: root})
	if err := remote.Write(ref(t, addr), img); err != nil {
		t.Fatal(err)
	}
	stop()
	addr, _ = start(t, registry.Options{Root: root})
	d, err := remote.Head(ref(t, addr))
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := img.Digest(); d.Digest != want {
		t.Errorf("digest %s, want %s", d.Digest, want)
	}
}

func TestTwoInOneProcess(t *testing.T) {
	first, _ := start(t, registry.Options{})
	second, _ := start(t, registry.Options{})
	img, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref(t, first), img); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Head(ref(t, second)); err == nil {
		t.Error("the second registry has the first one's image")
	}
}

// TestFilledRegistryIsReadOnly checks that the content can be read, and that pushes are refused.
func TestFilledRegistryIsReadOnly(t *testing.T) {
	img, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := start(t, registry.Options{Fill: func(_ context.Context, addr string) error {
		return remote.Write(ref(t, addr), img)
	}})
	if _, err := remote.Head(ref(t, addr)); err != nil {
		t.Error(err)
	}
	other, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref(t, addr), other); err == nil {
		t.Error("the registry accepts a push")
	}
	d, err := remote.Head(ref(t, addr))
	if want, _ := img.Digest(); err != nil || d.Digest != want {
		t.Errorf("digest %v (%v), want %s", d, err, want)
	}
}

func TestRegistryThatCannotBeFilledEnds(t *testing.T) {
	wrong := errors.New("nothing to push")
	err := registry.Serve(t.Context(), registry.Options{Fill: func(context.Context, string) error { return wrong }})
	if !errors.Is(err, wrong) {
		t.Errorf("error %v, want %v", err, wrong)
	}
}

func TestUnusableRootIsAnError(t *testing.T) {
	if err := registry.Serve(t.Context(), registry.Options{Addr: "127.0.0.1:-1"}); err == nil {
		t.Error("no error for an impossible address")
	}
}

func ref(t *testing.T, addr string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(addr + "/some/image:latest")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

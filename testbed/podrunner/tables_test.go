// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestImages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images.json")
	table := `{"example.com/app": {"path": "/bin/app"}, "example.com/app:2": "/bin/app2", "localhost:5000/x": ` +
		`{"path": "rel"}}`
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	images, err := ReadImages(file)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		image, want string
		known       bool
	}{
		"repository":      {"example.com/app", "/bin/app", true},
		"any tag":         {"example.com/app:1.0", "/bin/app", true},
		"its own tag":     {"example.com/app:2", "/bin/app2", true},
		"digest":          {"example.com/app@sha256:abc", "/bin/app", true},
		"tag and digest":  {"example.com/app:1@sha256:abc", "/bin/app", true},
		"registry's port": {"localhost:5000/x:1", filepath.Join(filepath.Dir(file), "rel"), true},
		"port, no tag":    {"localhost:5000/x", filepath.Join(filepath.Dir(file), "rel"), true},
		"unknown":         {"example.com/application:1", "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, known := images.Lookup(tt.image)
			if got.Path != tt.want || known != tt.known {
				t.Errorf("Lookup(%q) = %q, %t; want %q, %t", tt.image, got.Path, known, tt.want, tt.known)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	a, err := newAddresses("127.1.2.0/29") // .1 is the node, .2 to .6 are for pods
	if err != nil {
		t.Fatal(err)
	}
	take := func(pod types.UID, wanted string) string {
		t.Helper()
		addr, err := a.take(pod, wanted)
		if err != nil {
			t.Fatal(err)
		}
		return addr.String()
	}
	got := []string{take("kept", "127.1.2.3"), take("a", ""), take("b", ""), take("c", "127.1.2.3"),
		take("d", "10.0.0.1")}
	want := []string{"127.1.2.3", "127.1.2.2", "127.1.2.4", "127.1.2.5", "127.1.2.6"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if _, err := a.take("e", ""); !errors.Is(err, ErrNoAddress) {
		t.Errorf("error of a full range = %v, want ErrNoAddress", err)
	}
	if a.size() != len(want) {
		t.Errorf("size = %d, want %d", a.size(), len(want))
	}
	a.release("b")
	if addr := take("e", ""); addr != "127.1.2.4" {
		t.Errorf("after a release the address is %s, want 127.1.2.4", addr)
	}
}

func TestAddressRanges(t *testing.T) {
	for name, cidr := range map[string]string{
		"not a range": "127.0.0.1", "not loopback": "10.0.0.0/24", "too small": "127.0.0.0/32", "IPv6": "::1/128",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newAddresses(cidr); err == nil {
				t.Errorf("range %q is taken", cidr)
			}
		})
	}
}

func TestTail(t *testing.T) {
	var end tail
	for range 300 {
		if _, err := end.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
	}
	if got := end.String(); len(got) != tailBytes || got[len(got)-10:] != "0123456789" {
		t.Errorf("tail is %d bytes and ends with %q", len(got), got[len(got)-10:])
	}
}

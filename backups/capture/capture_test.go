// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/capture"
)

var echos = archive.Resource{Group: "example.com", Version: "v1", Plural: "echos", Kind: "Echo"}

// pages is a cluster with so many objects. It streams them, so that a test can count how many were read when one is
// passed on.
type pages struct {
	objects int
	limits  []int
	fail    error
}

func (p *pages) Page(_ context.Context, _ archive.Resource, _ string, limit int, next string) (io.ReadCloser, error) {
	if p.fail != nil && next != "" {
		return nil, p.fail
	}
	p.limits = append(p.limits, limit)
	from, _ := strconv.Atoi(next)
	to := min(from+limit, p.objects)
	more := ""
	if to < p.objects {
		more = strconv.Itoa(to)
	}
	reader, writer := io.Pipe()
	go func() {
		_, _ = fmt.Fprintf(writer, `{"apiVersion":"example.com/v1","items":[`)
		for i := from; i < to; i++ {
			if i > from {
				_, _ = writer.Write([]byte(","))
			}
			_, _ = fmt.Fprintf(writer, `{"metadata":{"name":"e%d"}}`, i)
		}
		_, _ = fmt.Fprintf(writer, `],"kind":"EchoList","metadata":{"continue":%q,"resourceVersion":"1"}}`, more)
		_ = writer.Close()
	}()
	return reader, nil
}

func TestAllPagesAreRead(t *testing.T) {
	p := &pages{objects: 1201}
	var names []string
	got, err := capture.ReadObjects(t.Context(), p, []capture.Request{{Resource: echos}}, func(line []byte) error {
		names = append(names, string(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := echos
	want.Objects = 1201
	if diff := cmp.Diff([]archive.Resource{want}, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	if len(names) != 1201 || names[1200] != `{"apiVersion":"example.com/v1","kind":"Echo","metadata":{"name":"e1200"}}` {
		t.Errorf("%d objects, the last is %s", len(names), names[len(names)-1])
	}
	if diff := cmp.Diff([]int{500, 500, 500}, p.limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestOneObjectIsInMemoryAtATime(t *testing.T) {
	p := &pages{objects: 400}
	reader := &counting{Pages: p}
	objects, most := 0, 0
	_, err := capture.ReadObjects(t.Context(), reader, []capture.Request{{Resource: echos}}, func(line []byte) error {
		objects++
		most = max(most, reader.bytes-objects*len(line)/2)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The decoder reads ahead by its buffer, never by the page.
	if ahead := 4096; most > ahead {
		t.Errorf("read %d bytes ahead of what was handed on, want at most %d", most, ahead)
	}
}

// counting counts the bytes that were read.
type counting struct {
	capture.Pages
	bytes int
}

func (c *counting) Page(ctx context.Context, r archive.Resource, selector string, limit int, next string) (
	io.ReadCloser, error) {
	page, err := c.Pages.Page(ctx, r, selector, limit, next)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(page, c), page}, nil
}

func (c *counting) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return len(p), nil
}

func TestAPageThatFailsFailsTheWhole(t *testing.T) {
	gone := errors.New("gone")
	_, err := capture.ReadObjects(t.Context(), &pages{objects: 501, fail: gone},
		[]capture.Request{{Resource: echos}}, func([]byte) error { return nil })
	if !errors.Is(err, gone) || !strings.Contains(err.Error(), "echos.example.com") {
		t.Errorf("error: %v", err)
	}
}

type fixed string

func (f fixed) Page(context.Context, archive.Resource, string, int, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(f))), nil
}

func TestListsThatAreCutFail(t *testing.T) {
	whole := `{"items":[{"metadata":{"name":"a"}}],"metadata":{}}`
	for i := range len(whole) - 1 {
		_, err := capture.ReadObjects(t.Context(), fixed(whole[:i]), []capture.Request{{Resource: echos}},
			func([]byte) error { return nil })
		if err == nil {
			t.Errorf("no error for %s", whole[:i])
		}
	}
}

func TestLine(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"what a backup keeps": {
			object: `{"apiVersion":"x","kind":"y","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5",
				"generation":3,"managedFields":[{}],"labels":{"l":"1"},"finalizers":["f"]},
				"spec":{"big":9007199254740993,"text":"a\nb"},"status":{"s":1}}`,
			want: `{"apiVersion":"example.com/v1","kind":"Echo","metadata":{"finalizers":["f"],"labels":{"l":"1"},` +
				`"name":"a","namespace":"n","uid":"u"},"spec":{"big":9007199254740993,"text":"a\nb"},"status":{"s":1}}`},
		"an object that is being deleted": {object: `{"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := capture.EncodeLine([]byte(test.object), echos)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := capture.EncodeLine([]byte(`{"spec":{}}`), echos); err == nil {
		t.Error("no error for an object without metadata")
	}
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/registry"
	"github.com/bellwether-dev/bellwether/release/image"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
)

// published are the images of hub and agent in a registry of their own. What the clusters run was pulled from there.
type published struct {
	dir    string
	cancel context.CancelFunc
	done   chan error
	// images are by the program that they hold.
	images map[string]image.Published
	// pulled are the programs that were unpacked, by the images' full names.
	pulled map[string]cluster.Image
}

// publish makes the images of hub and agent, pushes them to a registry, pulls them back by digest, and unpacks them.
func publish(ctx context.Context, binaries map[string]string) (*published, error) {
	dir, err := os.MkdirTemp("", "bellwether-images-")
	if err != nil {
		return nil, fmt.Errorf("make folder for images: %w", err)
	}
	p := &published{dir: dir, done: make(chan error, 1), images: map[string]image.Published{},
		pulled: map[string]cluster.Image{}}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	ready := make(chan string, 1)
	go func() {
		p.done <- registry.Serve(serving, registry.Options{Root: filepath.Join(dir, "registry"),
			Ready: func(addr string) { ready <- addr }})
	}()
	select {
	case addr := <-ready:
		target := image.Target{Client: oci.NewClient(oci.Options{}), Registry: addr + "/bellwether"}
		for _, name := range []string{build.Hub, build.Agent} {
			if err := p.add(ctx, target, name, binaries[name]); err != nil {
				return nil, errors.Join(err, p.stop())
			}
		}
		return p, nil
	case err := <-p.done:
		p.done <- nil
		return nil, errors.Join(fmt.Errorf("start registry of images: %w", err), p.stop())
	}
}

func (p *published) add(ctx context.Context, target image.Target, name, file string) error {
	program, err := image.ReadProgram(name, file, "")
	if err != nil {
		return err
	}
	set, err := image.NewSet([]image.Program{program},
		func(v1.Platform) (v1.Image, error) { return image.DefaultBase() })
	if err != nil {
		return err
	}
	pushed, err := target.Publish(ctx, set)
	if err != nil {
		return err
	}
	full := pushed.Repository + "@" + pushed.Digest
	img, err := target.Client.Pull(ctx, full, program.Platform, target.Access)
	if err != nil {
		return err
	}
	root := filepath.Join(p.dir, name)
	if err := os.Mkdir(root, 0o755); err != nil {
		return fmt.Errorf("make folder for image: %w", err)
	}
	path, err := image.Unpack(img, root)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", full, err)
	}
	p.images[name], p.pulled[full] = pushed, cluster.Image{Path: path}
	return nil
}

// values are those of the chart that name the image of a program, as arguments of the command line.
func (p *published) values(program string) []string {
	if p == nil {
		return nil
	}
	i := p.images[program]
	return []string{"--set", program + ".image.repository=" + i.Repository,
		"--set", program + ".image.digest=" + i.Digest}
}

// name is the image of a program as pods name it.
func (p *published) name(program, otherwise string) string {
	if p == nil {
		return otherwise
	}
	return p.images[program].Repository + "@" + p.images[program].Digest
}

func (p *published) stop() error {
	if p == nil {
		return nil
	}
	p.cancel()
	err := <-p.done
	p.done <- nil
	if err != nil {
		err = fmt.Errorf("stop registry of images: %w", err)
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

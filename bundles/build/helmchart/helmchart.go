// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helmchart renders a Helm chart to the manifests that package build makes a bundle of.
//
// Its input is a chart's folder or archive, and values. It asks no cluster, so `lookup` finds nothing, and runs no
// hooks, for OLM knows none. A chart that renders differently each time, as one does that makes up passwords, is
// refused: its bundle would not be the same twice.
package helmchart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/ignore"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/bellwether-dev/bellwether/bundles/build"
)

// ErrChart says that a chart cannot be read or rendered, and why.
var ErrChart = errors.New("unusable chart")

// maxBytes bounds the files of a chart, uncompressed.
const maxBytes = 32 << 20

// Chart is a chart that was read.
type Chart struct {
	chart *chart.Chart
	files []*loader.BufferedFile
}

// ReadDir reads a chart's folder. Links are refused, for what they point to is not part of the chart; .helmignore
// counts. Errors are ErrChart, or those of the file system.
func ReadDir(fsys fs.FS) (*Chart, error) {
	rules, err := ignored(fsys)
	if err != nil {
		return nil, err
	}
	var files []*loader.BufferedFile
	left := int64(maxBytes)
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read chart: %w", err)
		}
		if name == "." {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("read chart: %w", err)
		}
		switch {
		case rules.Ignore(name, info) && d.IsDir():
			return fs.SkipDir
		case rules.Ignore(name, info), d.IsDir():
			return nil
		case !info.Mode().IsRegular():
			return fmt.Errorf("%w: %s is a link or a device: a chart has files only", ErrChart, name)
		}
		if left -= info.Size(); left < 0 {
			return fmt.Errorf("%w: it has more than %d MiB", ErrChart, maxBytes>>20)
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return fmt.Errorf("read chart: %w", err)
		}
		files = append(files, &loader.BufferedFile{Name: name, Data: text})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return load(files)
}

func ignored(fsys fs.FS) (*ignore.Rules, error) {
	rules := ignore.Empty()
	text, err := fs.ReadFile(fsys, ignore.HelmIgnore)
	if err == nil {
		if rules, err = ignore.Parse(bytes.NewReader(text)); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrChart, ignore.HelmIgnore, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	rules.AddDefaults()
	return rules, nil
}

// ReadArchive reads a chart's .tgz. An archive with links, or with names outside of the chart, is refused as a whole.
// Errors are ErrChart, or those of the reader.
func ReadArchive(r io.Reader) (*Chart, error) {
	packed, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	if len(packed) > maxBytes {
		return nil, fmt.Errorf("%w: the archive has more than %d MiB", ErrChart, maxBytes>>20)
	}
	files, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	return load(files)
}

func unpack(packed []byte) ([]*loader.BufferedFile, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: it is no .tgz: %w", ErrChart, err)
	}
	defer func() { _ = plain.Close() }()
	bounded := &io.LimitedReader{R: plain, N: maxBytes + 1}
	archive := tar.NewReader(bounded)
	var files []*loader.BufferedFile
	for {
		file, err := nextFile(archive)
		switch {
		case bounded.N <= 0: // whatever else is wrong with what was cut off
			return nil, fmt.Errorf("%w: unpacked it has more than %d MiB", ErrChart, maxBytes>>20)
		case errors.Is(err, io.EOF):
			return files, nil
		case errors.Is(err, ErrChart):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: broken archive: %w", ErrChart, err)
		}
		files = append(files, file)
	}
}

// nextFile reads the next file of the chart; io.EOF is the end of a whole archive.
func nextFile(archive *tar.Reader) (*loader.BufferedFile, error) {
	for {
		header, err := archive.Next()
		if err != nil {
			return nil, err
		}
		name, err := entryName(header)
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		text, err := io.ReadAll(archive)
		return &loader.BufferedFile{Name: name, Data: text}, err
	}
}

// entryName is the name within the chart, whose own folder is the first part; empty for what is no file.
func entryName(header *tar.Header) (string, error) {
	switch header.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
		return "", nil
	case tar.TypeReg:
	default:
		return "", fmt.Errorf("%w: the archive has a link or a device, %q: a chart has files only", ErrChart,
			header.Name)
	}
	name := strings.ReplaceAll(header.Name, `\`, "/") // as archives made on Windows have it
	if path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") || strings.Contains(name, ":/") {
		return "", fmt.Errorf("%w: the archive has a file %q, outside of the chart", ErrChart, header.Name)
	}
	_, inside, ok := strings.Cut(path.Clean(name), "/")
	if !ok {
		return "", fmt.Errorf("%w: the archive has a file %q beside the chart's folder", ErrChart, header.Name)
	}
	return inside, nil
}

func load(files []*loader.BufferedFile) (*Chart, error) {
	for _, f := range files {
		f.Data = bytes.TrimPrefix(f.Data, []byte("\xef\xbb\xbf")) // the byte order mark of some editors
		if path.Ext(f.Name) == ".tgz" && strings.HasPrefix(f.Name, "charts/") {
			if _, err := unpack(f.Data); err != nil {
				return nil, fmt.Errorf("dependency %s: %w", f.Name, err)
			}
		}
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChart, err)
	}
	if c.Metadata.Type == "library" {
		return nil, fmt.Errorf("%w: %s is a library chart, which installs nothing", ErrChart, c.Name())
	}
	for _, want := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(have *chart.Chart) bool { return have.Name() == want.Name }) {
			return nil, fmt.Errorf("%w: its dependency %s is not in charts/: run `helm dependency build` first",
				ErrChart, want.Name)
		}
	}
	return &Chart{c, files}, nil
}

// DefaultKubeVersion is the Kubernetes that charts are rendered for, unless asked otherwise. It is a constant, as a
// bundle must not depend on the libraries that the program was built with.
const DefaultKubeVersion = "v1.35.0"

// Options are those of `helm template`.
type Options struct {
	// Release and Namespace are what the chart takes them for; empty means the chart's name, for both.
	Release, Namespace string
	// Values win over those of the chart.
	Values map[string]any
	// KubeVersion is that of the cluster that the chart is rendered for; empty means DefaultKubeVersion.
	KubeVersion string
	// APIVersions are APIs that the chart may count on besides those of Kubernetes itself, such as
	// monitoring.coreos.com/v1.
	APIVersions []string
}

// Rendered are a chart's manifests.
type Rendered struct {
	Sources []build.Source
	// Warnings are sentences about what was left out.
	Warnings []string
}

// Render renders the chart, CRDs first. Errors are ErrChart.
func (c *Chart) Render(o Options) (*Rendered, error) {
	first, err := c.render(o)
	if err != nil {
		return nil, err
	}
	second, err := c.render(o)
	if err != nil {
		return nil, err
	}
	for name, text := range first {
		if second[name] != text {
			return nil, fmt.Errorf("%w: %s renders differently each time (random values, generated certificates, the "+
				"time): "+
				"set these values, so that the same input gives the same bundle", ErrChart, name)
		}
	}
	out := &Rendered{}
	for _, crd := range c.chart.CRDObjects() {
		out.Sources = append(out.Sources, build.Source{Name: crd.Filename, Text: crd.File.Data})
	}
	return out, out.add(first)
}

// add adds rendered templates without the hooks.
func (r *Rendered) add(templates map[string]string) error {
	for name := range templates {
		if path.Base(name) == "NOTES.txt" {
			delete(templates, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(templates, nil, releaseutil.InstallOrder)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChart, err)
	}
	for _, h := range hooks {
		if !slices.Contains(h.Events, release.HookTest) {
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("%s %s (%s) is left out: it is a hook of Helm, and OLM runs no hooks", h.Kind, h.Name,
					h.Path))
		}
	}
	slices.Sort(r.Warnings)
	for _, m := range manifests {
		r.Sources = append(r.Sources, build.Source{Name: m.Name, Where: m.Name, Text: []byte(m.Content)})
	}
	return nil
}

// render returns the text of each template by its path.
func (c *Chart) render(o Options) (map[string]string, error) {
	capabilities, err := c.capabilities(o)
	if err != nil {
		return nil, err
	}
	// Values switch dependencies on and off in the chart itself, so each rendering gets one of its own.
	fresh, err := loader.LoadFiles(c.files)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChart, err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(fresh, o.Values); err != nil {
		return nil, fmt.Errorf("%w: dependencies: %w", ErrChart, err)
	}
	values, err := chartutil.ToRenderValues(fresh, o.Values, chartutil.ReleaseOptions{
		Name: cmp.Or(o.Release, c.chart.Name()), Namespace: cmp.Or(o.Namespace, c.chart.Name()), Revision: 1,
		IsInstall: true,
	}, capabilities)
	if err != nil {
		return nil, fmt.Errorf("%w: values: %w", ErrChart, err)
	}
	rendered, err := engine.Render(fresh, values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChart, err)
	}
	c.chart = fresh // whose CRDs are those of the dependencies that are on
	return rendered, nil
}

func (c *Chart) capabilities(o Options) (*chartutil.Capabilities, error) {
	out := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(cmp.Or(o.KubeVersion, DefaultKubeVersion))
	if err != nil {
		return nil, fmt.Errorf("%w: Kubernetes version %q: %w", ErrChart, o.KubeVersion, err)
	}
	out.KubeVersion = *version
	out.APIVersions = append(out.APIVersions, o.APIVersions...)
	if need := c.chart.Metadata.KubeVersion; need != "" &&
		!chartutil.IsCompatibleRange(need, out.KubeVersion.String()) {
		return nil, fmt.Errorf("%w: it needs Kubernetes %s, and is rendered for %s", ErrChart, need,
			out.KubeVersion.String())
	}
	return out, nil
}

// capabilityLevel is where Artifact Hub keeps what a ClusterServiceVersion calls capabilities.
const capabilityLevel = "artifacthub.io/operatorCapabilities"

// Defaults are what the chart says of the operator. Its version is taken for the operator's if it is a plain one.
func (c *Chart) Defaults() build.Options {
	m := c.chart.Metadata
	o := build.Options{Package: m.Name, About: build.About{
		Description: m.Description, Keywords: m.Keywords, Capabilities: m.Annotations[capabilityLevel],
		MinKubeVersion: minKubeVersion(m.KubeVersion),
	}}
	if _, err := build.PlainVersion(m.Version); err == nil {
		o.Version = m.Version
	}
	for _, who := range m.Maintainers {
		o.About.Maintainers = append(o.About.Maintainers,
			operatorsv1alpha1.Maintainer{Name: who.Name, Email: who.Email})
		o.About.Provider = cmp.Or(o.About.Provider, who.Name)
	}
	if m.Home != "" {
		o.About.Links = append(o.About.Links, operatorsv1alpha1.AppLink{Name: "Home", URL: m.Home})
	}
	for _, source := range m.Sources {
		o.About.Links = append(o.About.Links, operatorsv1alpha1.AppLink{Name: "Source", URL: source})
	}
	return o
}

var atLeast = regexp.MustCompile(`^>=\s*v?(\d+\.\d+)(\.\d+)?(-0)?$`)

// minKubeVersion turns the constraint that most charts have into a version; empty for any other one.
func minKubeVersion(constraint string) string {
	m := atLeast.FindStringSubmatch(strings.TrimSpace(constraint))
	if m == nil {
		return ""
	}
	return m[1] + cmp.Or(m[2], ".0")
}

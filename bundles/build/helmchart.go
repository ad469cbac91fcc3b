// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

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
)

// ErrChart means that a chart cannot be read or rendered. The error text gives the reason.
var ErrChart = errors.New("unusable chart")

// maxBytes is the maximum size of all files of a chart, uncompressed.
const maxBytes = 32 << 20

// Chart is a Helm chart that was read.
type Chart struct {
	chart *chart.Chart
	files []*loader.BufferedFile
}

// ReadChartDir reads the folder of a chart. It follows .helmignore, and refuses links, because their targets are not
// part of the chart. Errors match ErrChart, or are errors of the file system.
func ReadChartDir(fsys fs.FS) (*Chart, error) {
	rules, err := readIgnoreRules(fsys)
	if err != nil {
		return nil, err
	}
	var files []*loader.BufferedFile
	remaining := int64(maxBytes)
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
		if remaining -= info.Size(); remaining < 0 {
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
	return loadChart(files)
}

// readIgnoreRules reads .helmignore and adds the default rules.
func readIgnoreRules(fsys fs.FS) (*ignore.Rules, error) {
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

// ReadChartArchive reads the .tgz file of a chart. It refuses an archive that has links or names outside of the chart.
// Errors match ErrChart, or are errors of the reader.
func ReadChartArchive(r io.Reader) (*Chart, error) {
	packed, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	if len(packed) > maxBytes {
		return nil, fmt.Errorf("%w: the archive has more than %d MiB", ErrChart, maxBytes>>20)
	}
	files, err := unpackArchive(packed)
	if err != nil {
		return nil, err
	}
	return loadChart(files)
}

// unpackArchive returns the files of a .tgz archive. Errors match ErrChart.
func unpackArchive(packed []byte) ([]*loader.BufferedFile, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: it is no .tgz: %w", ErrChart, err)
	}
	defer func() { _ = plain.Close() }()
	bounded := &io.LimitedReader{R: plain, N: maxBytes + 1}
	archive := tar.NewReader(bounded)
	var files []*loader.BufferedFile
	for {
		file, err := readNextFile(archive)
		switch {
		case bounded.N <= 0: // the limit caused any other error
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

// readNextFile reads the next file of the chart. It returns io.EOF at the end of the archive.
func readNextFile(archive *tar.Reader) (*loader.BufferedFile, error) {
	for {
		header, err := archive.Next()
		if err != nil {
			return nil, err
		}
		name, err := readEntryName(header)
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

// readEntryName returns the path of an entry within the chart's folder, which is the top folder of the archive; empty
// for a folder or a header. Errors match ErrChart.
func readEntryName(header *tar.Header) (string, error) {
	switch header.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
		return "", nil
	case tar.TypeReg: // a file of the chart
	default:
		return "", fmt.Errorf("%w: the archive has a link or a device, %q: a chart has files only", ErrChart,
			header.Name)
	}
	name := strings.ReplaceAll(header.Name, `\`, "/") // archives from Windows can have backslashes
	if path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") || strings.Contains(name, ":/") {
		return "", fmt.Errorf("%w: the archive has a file %q, outside of the chart", ErrChart, header.Name)
	}
	_, chartPath, ok := strings.Cut(path.Clean(name), "/")
	if !ok {
		return "", fmt.Errorf("%w: the archive has a file %q beside the chart's folder", ErrChart, header.Name)
	}
	return chartPath, nil
}

// loadChart loads a chart from its files. It refuses library charts and charts with missing dependencies.
func loadChart(files []*loader.BufferedFile) (*Chart, error) {
	for _, f := range files {
		f.Data = bytes.TrimPrefix(f.Data, []byte("\xef\xbb\xbf")) // some editors add a byte order mark
		if path.Ext(f.Name) == ".tgz" && strings.HasPrefix(f.Name, "charts/") {
			if _, err := unpackArchive(f.Data); err != nil { // checks its names and size; LoadFiles unpacks it again
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
	for _, d := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(have *chart.Chart) bool { return have.Name() == d.Name }) {
			return nil, fmt.Errorf("%w: its dependency %s is not in charts/: run `helm dependency build` first",
				ErrChart, d.Name)
		}
	}
	return &Chart{c, files}, nil
}

// DefaultChartKubeVersion is the default Kubernetes version that charts are rendered for. It is a constant, because a
// bundle must not depend on the libraries that the program was built with.
const DefaultChartKubeVersion = "v1.35.0"

// ChartOptions are the options of `helm template`.
type ChartOptions struct {
	// Release and Namespace are the release name and the namespace for rendering; empty means the name of the chart.
	Release, Namespace string
	// Values override the values of the chart.
	Values map[string]any
	// KubeVersion is the Kubernetes version of the cluster; empty means DefaultChartKubeVersion.
	KubeVersion string
	// APIVersions are APIs of the cluster in addition to the APIs of Kubernetes, such as monitoring.coreos.com/v1.
	APIVersions []string
}

// RenderedChart contains the manifests of a chart.
type RenderedChart struct {
	Sources []Source
	// Warnings are sentences about hooks that were left out.
	Warnings []string
}

// Render renders the chart, CRDs first. It renders twice, and returns an error if the results differ, because a bundle
// must not depend on the time of the build. Errors match ErrChart.
func (c *Chart) Render(o ChartOptions) (*RenderedChart, error) {
	templates, err := c.renderTemplates(o)
	if err != nil {
		return nil, err
	}
	repeated, err := c.renderTemplates(o)
	if err != nil {
		return nil, err
	}
	for name, text := range templates {
		if repeated[name] != text {
			return nil, fmt.Errorf("%w: %s renders differently each time (random values, generated certificates, the "+
				"time): set these values, so that the same input gives the same bundle", ErrChart, name)
		}
	}
	out := &RenderedChart{}
	for _, crd := range c.chart.CRDObjects() {
		out.Sources = append(out.Sources, Source{Name: crd.Filename, Text: crd.File.Data})
	}
	return out, out.addTemplates(templates)
}

// addTemplates adds the manifests of rendered templates to the sources. It leaves out notes and hooks, and warns about
// hooks except those of tests. It deletes the notes from templates.
func (r *RenderedChart) addTemplates(templates map[string]string) error {
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
		r.Sources = append(r.Sources, Source{Name: m.Name, Where: m.Name, Text: []byte(m.Content)})
	}
	return nil
}

// renderTemplates returns the text of each rendered template by its path. It replaces c.chart by the chart with the
// dependencies that the values enable.
func (c *Chart) renderTemplates(o ChartOptions) (map[string]string, error) {
	capabilities, err := c.newCapabilities(o)
	if err != nil {
		return nil, err
	}
	// Rendering changes the chart, because values enable and disable dependencies. So each rendering uses a new copy.
	copied, err := loader.LoadFiles(c.files)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChart, err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(copied, o.Values); err != nil {
		return nil, fmt.Errorf("%w: dependencies: %w", ErrChart, err)
	}
	values, err := chartutil.ToRenderValues(copied, o.Values, chartutil.ReleaseOptions{
		Name: cmp.Or(o.Release, c.chart.Name()), Namespace: cmp.Or(o.Namespace, c.chart.Name()), Revision: 1,
		IsInstall: true,
	}, capabilities)
	if err != nil {
		return nil, fmt.Errorf("%w: values: %w", ErrChart, err)
	}
	rendered, err := engine.Render(copied, values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChart, err)
	}
	c.chart = copied // Render reads the CRDs of the enabled dependencies from it
	return rendered, nil
}

// newCapabilities returns the capabilities of the cluster that the chart is rendered for. It returns an error if the
// chart does not support the Kubernetes version.
func (c *Chart) newCapabilities(o ChartOptions) (*chartutil.Capabilities, error) {
	out := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(cmp.Or(o.KubeVersion, DefaultChartKubeVersion))
	if err != nil {
		return nil, fmt.Errorf("%w: Kubernetes version %q: %w", ErrChart, o.KubeVersion, err)
	}
	out.KubeVersion = *version
	out.APIVersions = append(out.APIVersions, o.APIVersions...)
	if constraint := c.chart.Metadata.KubeVersion; constraint != "" &&
		!chartutil.IsCompatibleRange(constraint, out.KubeVersion.String()) {
		return nil, fmt.Errorf("%w: it needs Kubernetes %s, and is rendered for %s", ErrChart, constraint,
			out.KubeVersion.String())
	}
	return out, nil
}

// capabilityLevel is the annotation of Artifact Hub for the capabilities of a ClusterServiceVersion.
const capabilityLevel = "artifacthub.io/operatorCapabilities"

// Defaults returns options from the chart's metadata. The chart's version is used only if it has the form X.Y.Z.
func (c *Chart) Defaults() Options {
	m := c.chart.Metadata
	o := Options{Package: m.Name, About: About{
		Description: m.Description, Keywords: m.Keywords, Capabilities: m.Annotations[capabilityLevel],
		MinKubeVersion: parseMinKubeVersion(m.KubeVersion),
	}}
	if _, err := PlainVersion(m.Version); err == nil {
		o.Version = m.Version
	}
	for _, maintainer := range m.Maintainers {
		o.About.Maintainers = append(o.About.Maintainers,
			operatorsv1alpha1.Maintainer{Name: maintainer.Name, Email: maintainer.Email})
		o.About.Provider = cmp.Or(o.About.Provider, maintainer.Name)
	}
	if m.Home != "" {
		o.About.Links = append(o.About.Links, operatorsv1alpha1.AppLink{Name: "Home", URL: m.Home})
	}
	for _, source := range m.Sources {
		o.About.Links = append(o.About.Links, operatorsv1alpha1.AppLink{Name: "Source", URL: source})
	}
	return o
}

var minKubePattern = regexp.MustCompile(`^>=\s*v?(\d+\.\d+)(\.\d+)?(-0)?$`)

// parseMinKubeVersion converts a constraint such as >=1.25 to a version such as 1.25.0; empty for any other constraint.
func parseMinKubeVersion(constraint string) string {
	m := minKubePattern.FindStringSubmatch(strings.TrimSpace(constraint))
	if m == nil {
		return ""
	}
	return m[1] + cmp.Or(m[2], ".0")
}

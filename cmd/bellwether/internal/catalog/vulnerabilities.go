// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/vulnerabilities"
	"github.com/bellwether-dev/bellwether/catalogs/vulnerabilities/inventory"
	"github.com/bellwether-dev/bellwether/catalogs/vulnerabilities/osv"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/phrase"
)

const catalogVulnerabilitiesLong = `Show which versions of a catalog have known vulnerabilities. What is in their images
is read from SBOMs (SPDX 2 or CycloneDX, as JSON) and compared with a database in the
format of OSV. With --hub, the clusters that run each version are shown.

--osv is a folder with OSV records as JSON files, or with the archives that osv.dev
publishes for each ecosystem (all.zip). Nothing is downloaded.

SBOMs are read from the registry, where they are attached to the images as OCI
referrers: as they are, or as in-toto statements, whose signatures are not verified.
--sbom adds a file, a folder of files, or IMAGE=FILE. A file belongs to an image if
it names the digest of the image as its subject.

An image without an SBOM is unknown, and packages that the database or this program
does not cover are counted as not compared. Both may have vulnerabilities.

Exit codes:
  0  no vulnerability has the severity of --fail-on or a higher one
  1  at least one has, or something is unknown and --fail-on-unknown is set
  2  the input cannot be read`

// Limits of what is read.
const (
	// maxSBOM bounds an SBOM in a file.
	maxSBOM = 128 << 20
	// sbomFetches bounds how many images are looked up at the same time.
	sbomFetches = 8
	// VulnerabilitiesFound is the exit status where there are vulnerabilities that count.
	VulnerabilitiesFound = 1
)

// failNever is a value of --fail-on.
const failNever = "never"

type vulnerabilityOptions struct {
	osv           string
	sboms         []string
	hub           bool
	offline       bool
	failOn        string
	failOnUnknown bool
	access        registry.Flags
	out           command.Output
}

func (a *app) catalogVulnerabilitiesCommand() *cobra.Command {
	var o vulnerabilityOptions
	c := &cobra.Command{
		Use: "vulnerabilities REF|DIR [PACKAGE]", Short: "Show which versions have known vulnerabilities",
		Long: catalogVulnerabilitiesLong,
		Example: "  bellwether catalog vulnerabilities registry.example.com/catalogs/main:latest --osv ./osv --hub\n" +
			"  bellwether catalog vulnerabilities ./catalog echo-operator --osv ./osv --sbom ./sboms",
		Args:              oneOrTwo,
		ValidArgsFunction: completePackage(&o.access),
		RunE: func(c *cobra.Command, args []string) error {
			report, err := a.vulnerabilities(c.Context(), o, args)
			if err != nil {
				return registry.WithHint(err)
			}
			return a.showVulnerabilities(o, report)
		},
	}
	f := c.Flags()
	f.StringVar(&o.osv, "osv", "", "The `FOLDER` with the OSV database. Required.")
	f.StringArrayVar(&o.sboms, "sbom", nil, "An SBOM: a `FILE`, a folder, or IMAGE=FILE. Can be repeated.")
	f.BoolVar(&o.hub, "hub", false, "Show which clusters of the fleet run each version.")
	f.BoolVar(&o.offline, "no-referrers", false, "Do not look for SBOMs in registries.")
	f.StringVar(&o.failOn, "fail-on", string(osv.High),
		"The lowest severity that makes the command fail: critical, high, medium, low, or never. One that nobody has "+
			"rated counts as high.")
	f.BoolVar(&o.failOnUnknown, "fail-on-unknown", false,
		"Fail also if an image has no SBOM, or a package cannot be compared.")
	_ = c.MarkFlagDirname("osv")
	_ = c.RegisterFlagCompletionFunc("fail-on",
		cobra.FixedCompletions(failLevels(), cobra.ShellCompDirectiveNoFileComp))
	o.access.Add(c)
	o.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	return a.ErrorsAre(ExitTrouble, c)
}

func failLevels() []string {
	return []string{string(osv.Critical), string(osv.High), string(osv.Medium), string(osv.Low), failNever}
}

func (o vulnerabilityOptions) check() error {
	if err := o.out.Check(); err != nil {
		return err
	}
	if o.osv == "" {
		return exit.Hintf("download https://osv-vulnerabilities.storage.googleapis.com/ECOSYSTEM/all.zip into a folder",
			"missing flag --osv: the folder with the vulnerability database")
	}
	if err := registry.CheckFolder(o.osv); err != nil {
		return fmt.Errorf("read the vulnerability database of --osv: %w", err)
	}
	if !slices.Contains(failLevels(), o.failOn) {
		return exit.Hintf("use "+strings.Join(failLevels(), ", "), "invalid value %q of --fail-on", o.failOn)
	}
	return nil
}

func (a *app) vulnerabilities(ctx context.Context, o vulnerabilityOptions, args []string) (vulnerabilities.Report,
	error) {
	var none vulnerabilities.Report
	if err := o.check(); err != nil {
		return none, err
	}
	packages, err := o.packages(ctx, args)
	if err != nil {
		return none, err
	}
	files, err := readSBOMs(o.sboms)
	if err != nil {
		return none, err
	}
	in := vulnerabilities.Input{Packages: packages}
	if in.Contents, err = o.contents(ctx, packages, files); err != nil {
		return none, err
	}
	for _, f := range files {
		if !f.used {
			about := append(slices.Clone(f.inventory.Digests), f.inventory.Names...)
			a.Warn("Warning: SBOM %s is about no image of the catalog. It is about %s.\n", f.file,
				cmp.Or(phrase.First(about, 3), "nothing"))
		}
	}
	if in.Database, err = osv.Read(os.DirFS(o.osv), vulnerabilities.Targets(in.Contents)); err != nil {
		return none, exit.Hintf("give the folder with the archives of osv.dev, or with records as JSON files",
			"--osv %s: %w", o.osv, err)
	}
	for _, text := range in.Database.Unread {
		a.Warn("Warning: not read: %s\n", phrase.OneLine(text))
	}
	if o.hub {
		if in.Installed, err = a.installedBundles(ctx, packages); err != nil {
			return none, err
		}
	}
	return vulnerabilities.Compare(in), nil
}

func (o vulnerabilityOptions) packages(ctx context.Context, args []string) ([]*catalogs.Package, error) {
	files, err := o.access.Open(ctx, args[0])
	if err != nil {
		return nil, err
	}
	packages, err := catalogs.ReadWithImages(files, func(string, *catalogs.Bundle) error { return nil })
	if err != nil || len(args) == 1 {
		return packages, err
	}
	i := slices.IndexFunc(packages, func(p *catalogs.Package) bool { return p.Name == args[1] })
	if i < 0 {
		return nil, exit.Hintf("see `bellwether catalog show "+args[0]+"`", "%w %q", catalogs.ErrNoPackage, args[1])
	}
	return packages[i : i+1], nil
}

// sbomFile is an SBOM that the user named.
type sbomFile struct {
	file string
	// image is the one that the user says it is about; empty where the SBOM says it.
	image     string
	inventory inventory.Inventory
	used      bool
}

func (f *sbomFile) concerns(image string) bool {
	if f.image != "" {
		return f.image == image
	}
	return f.inventory.Concerns(image)
}

// readSBOMs reads files and folders. In a folder, files that are no SBOM are left out.
func readSBOMs(places []string) ([]*sbomFile, error) {
	var out []*sbomFile
	for _, place := range places {
		image, file, named := strings.Cut(place, "=")
		if !named {
			image, file = "", place
		} else if err := checkPair(place, image, file); err != nil {
			return nil, err
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, fmt.Errorf("read SBOM: %w", err)
		}
		if !info.IsDir() {
			one, err := readSBOM(file)
			if err != nil {
				return nil, err
			}
			one.image = image
			out = append(out, one)
			continue
		}
		if named {
			return nil, exit.Hintf("use IMAGE=FILE", "%s is a folder", file)
		}
		found, err := readSBOMFolder(file)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// checkPair objects to an IMAGE=FILE that could never be about an image of a catalog.
func checkPair(place, image, file string) error {
	if _, err := name.ParseReference(image); err != nil || file == "" {
		return exit.Hintf("use IMAGE=FILE, with the image as the catalog names it", "invalid value %q of --sbom", place)
	}
	return nil
}

func readSBOMFolder(dir string) ([]*sbomFile, error) {
	var out []*sbomFile
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || filepath.Ext(file) != ".json" {
			return err
		}
		one, err := readSBOM(file)
		if errors.Is(err, inventory.ErrNotSBOM) {
			return nil
		}
		out = append(out, one)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read SBOMs: %w", err)
	}
	if len(out) == 0 {
		return nil, exit.Hintf("SBOMs are JSON files whose names end in .json", "folder %s has no SBOMs", dir)
	}
	return out, nil
}

func readSBOM(file string) (*sbomFile, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read SBOM: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxSBOM+1))
	if err != nil {
		return nil, fmt.Errorf("read SBOM: %w", err)
	}
	if len(text) > maxSBOM {
		return nil, fmt.Errorf("read SBOM %s: more than %d MiB", file, maxSBOM>>20)
	}
	read, err := inventory.Read(text)
	if err != nil {
		return nil, fmt.Errorf("read SBOM %s: %w", file, err)
	}
	return &sbomFile{file: file, inventory: read}, nil
}

// contents finds out what is in the images: by the files where there are any, otherwise by what is attached.
func (o vulnerabilityOptions) contents(ctx context.Context, packages []*catalogs.Package,
	files []*sbomFile) (map[string]vulnerabilities.Contents, error) {
	out := map[string]vulnerabilities.Contents{}
	var mu sync.Mutex
	var fetches errgroup.Group
	fetches.SetLimit(sbomFetches)
	client := oci.NewClient(oci.Options{})
	for _, image := range imagesOf(packages) {
		contents := vulnerabilities.Contents{}
		for _, f := range files {
			if f.concerns(image) {
				f.used = true
				contents.Inventories = append(contents.Inventories, f.inventory)
			}
		}
		if len(contents.Inventories) > 0 || o.offline {
			mu.Lock()
			out[image] = contents
			mu.Unlock()
			continue
		}
		fetches.Go(func() error {
			contents := attachedTo(ctx, client, image, o.access.Access())
			mu.Lock()
			defer mu.Unlock()
			out[image] = contents
			return ctx.Err()
		})
	}
	if err := fetches.Wait(); err != nil {
		return nil, fmt.Errorf("read SBOMs: %w", err)
	}
	return out, nil
}

func imagesOf(packages []*catalogs.Package) []string {
	var out []string
	for _, p := range packages {
		for _, b := range p.Bundles {
			out = append(out, vulnerabilities.ImagesOf(b)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// attachedTo reads the SBOMs that a registry has for an image. That it has none, or does not answer, is a problem of
// this image.
func attachedTo(ctx context.Context, client *oci.Client, image string, access oci.Access) vulnerabilities.Contents {
	attached, err := client.SBOMs(ctx, image, access)
	if err != nil {
		return vulnerabilities.Contents{Problem: phrase.OneLine(err.Error())}
	}
	var out vulnerabilities.Contents
	for _, text := range attached {
		read, err := inventory.Read(text)
		switch {
		case err == nil:
			out.Inventories = append(out.Inventories, read)
		case !errors.Is(err, inventory.ErrNotSBOM):
			out.Problem = err.Error()
		}
	}
	return out
}

// installedBundles are the bundles of the packages that clusters run.
func (a *app) installedBundles(ctx context.Context, packages []*catalogs.Package) ([]vulnerabilities.Installed, error) {
	h, err := a.Hub()
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.OperatorInstallList{}
	if err := h.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list installs: %w", err)
	}
	out := []vulnerabilities.Installed{}
	for _, i := range list.Items {
		admitted, installed := i.Spec.Admission, i.Status.Installed
		if admitted == nil || installed == nil || installed.Bundle == "" {
			continue
		}
		name := admitted.Release.Package
		if slices.ContainsFunc(packages, func(p *catalogs.Package) bool { return p.Name == name }) {
			out = append(out, vulnerabilities.Installed{Package: name, Cluster: i.Spec.Cluster,
				Installed: catalogs.Installed{Name: installed.Bundle, Version: installed.Version}})
		}
	}
	return out, nil
}

func (a *app) showVulnerabilities(o vulnerabilityOptions, report vulnerabilities.Report) error {
	if o.out.Table() {
		a.Say("%s", Vulnerabilities(report, a.Style(), o.hub, o.out.Wide()))
	} else if err := o.out.Value(a.Streams.Out, report); err != nil {
		return err
	}
	failed := o.failOn != failNever && report.Reaches(osv.Severity(o.failOn))
	if failed || o.failOnUnknown && report.IsUnknown() {
		return &exit.CodeError{Code: VulnerabilitiesFound}
	}
	return nil
}

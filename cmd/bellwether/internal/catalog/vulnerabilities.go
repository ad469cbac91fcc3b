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

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/scan"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/internal/phrase"
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

// Limits of the input.
const (
	// maxSBOMBytes limits the size of an SBOM in a file.
	maxSBOMBytes = 128 << 20
	// maxSBOMFetches limits how many images are looked up at the same time.
	maxSBOMFetches = 8
	// VulnerabilitiesFound is the exit code if a vulnerability has the severity of --fail-on or a higher severity.
	VulnerabilitiesFound = 1
)

// failNever is a value of --fail-on: no vulnerability makes the command fail.
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

func (a *app) newVulnerabilitiesCommand() *cobra.Command {
	var o vulnerabilityOptions
	c := &cobra.Command{
		Use: "vulnerabilities REF|DIR [PACKAGE]", Short: "Show which versions have known vulnerabilities",
		Long: catalogVulnerabilitiesLong,
		Example: "  bellwether catalog vulnerabilities registry.example.com/catalogs/main:latest --osv ./osv --hub\n" +
			"  bellwether catalog vulnerabilities ./catalog echo-operator --osv ./osv --sbom ./sboms",
		Args:              checkCatalogArguments,
		ValidArgsFunction: completePackage(&o.access),
		RunE: func(c *cobra.Command, args []string) error {
			report, err := a.buildVulnerabilityReport(c.Context(), o, args)
			if err != nil {
				return registry.AddHint(err)
			}
			return a.showVulnerabilities(o, report)
		},
	}
	f := c.Flags()
	f.StringVar(&o.osv, "osv", "", "The `FOLDER` with the OSV database. Required.")
	f.StringArrayVar(&o.sboms, "sbom", nil, "An SBOM: a `FILE`, a folder, or IMAGE=FILE. Can be repeated.")
	f.BoolVar(&o.hub, "hub", false, "Show which clusters of the fleet run each version.")
	f.BoolVar(&o.offline, "no-referrers", false, "Do not look for SBOMs in registries.")
	f.StringVar(&o.failOn, "fail-on", string(scan.High),
		"The lowest severity that makes the command fail: critical, high, medium, low, or never. A vulnerability "+
			"without a rating counts as high.")
	f.BoolVar(&o.failOnUnknown, "fail-on-unknown", false,
		"Fail also if an image has no SBOM, or a package cannot be compared.")
	_ = c.MarkFlagDirname("osv")
	_ = c.RegisterFlagCompletionFunc("fail-on",
		cobra.FixedCompletions(listFailLevels(), cobra.ShellCompDirectiveNoFileComp))
	o.access.Add(c)
	o.out.Add(c, command.OutputWide, command.OutputJSON, command.OutputYAML)
	return a.SetErrorCode(ExitTrouble, c)
}

func listFailLevels() []string {
	return []string{string(scan.Critical), string(scan.High), string(scan.Medium), string(scan.Low), failNever}
}

// checkFlags returns an error if the values of flags are invalid.
func (o vulnerabilityOptions) checkFlags() error {
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
	if !slices.Contains(listFailLevels(), o.failOn) {
		return exit.Hintf("use "+strings.Join(listFailLevels(), ", "), "invalid value %q of --fail-on", o.failOn)
	}
	return nil
}

// buildVulnerabilityReport reads the catalog, the SBOMs, the database and, with --hub, the installed bundles, and
// compares them. It warns about SBOMs and records that are not used.
func (a *app) buildVulnerabilityReport(ctx context.Context, o vulnerabilityOptions, args []string) (scan.Report,
	error) {
	var none scan.Report
	if err := o.checkFlags(); err != nil {
		return none, err
	}
	packages, err := o.readPackages(ctx, args)
	if err != nil {
		return none, err
	}
	documents, err := readSBOMs(o.sboms)
	if err != nil {
		return none, err
	}
	images := scan.ListImages(packages)
	contents, unused := scan.AssignDocuments(images, documents)
	if !o.offline {
		if err := o.addAttachedSBOMs(ctx, images, contents); err != nil {
			return none, err
		}
	}
	for _, d := range unused {
		subjects := append(slices.Clone(d.Inventory.Digests), d.Inventory.Names...)
		a.Warn("Warning: SBOM %s is about no image of the catalog. It is about %s.\n", d.File,
			cmp.Or(phrase.First(subjects, 3), "nothing"))
	}
	in := scan.Input{Packages: packages, Contents: contents}
	if in.Database, err = scan.ReadDatabase(os.DirFS(o.osv), scan.Targets(in.Contents)); err != nil {
		return none, exit.Hintf("give the folder with the archives of osv.dev, or with records as JSON files",
			"--osv %s: %w", o.osv, err)
	}
	for _, text := range in.Database.Unread {
		a.Warn("Warning: not read: %s\n", phrase.OneLine(text))
	}
	if o.hub {
		if in.Installed, err = a.listInstalled(ctx); err != nil {
			return none, err
		}
	}
	return scan.Compare(in), nil
}

// readPackages returns the packages of the catalog args[0], or only the package args[1] if it is given.
func (o vulnerabilityOptions) readPackages(ctx context.Context, args []string) ([]*catalogs.Package, error) {
	files, err := o.access.Open(ctx, args[0])
	if err != nil {
		return nil, err
	}
	acceptBundle := func(string, *catalogs.Bundle) error { return nil }
	packages, err := catalogs.ReadWithImages(files, acceptBundle)
	if err != nil || len(args) == 1 {
		return packages, err
	}
	i := slices.IndexFunc(packages, func(p *catalogs.Package) bool { return p.Name == args[1] })
	if i < 0 {
		return nil, exit.Hintf("see `bellwether catalog show "+args[0]+"`", "%w %q", catalogs.ErrNoPackage, args[1])
	}
	return packages[i : i+1], nil
}

// readSBOMs reads the files and folders of --sbom. It skips files in a folder that are not SBOMs.
func readSBOMs(arguments []string) ([]scan.Document, error) {
	var out []scan.Document
	for _, argument := range arguments {
		image, file, hasImage := strings.Cut(argument, "=")
		if !hasImage {
			image, file = "", argument
		} else if err := checkImageFile(argument, image, file); err != nil {
			return nil, err
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, fmt.Errorf("read SBOM: %w", err)
		}
		if !info.IsDir() {
			sbom, err := readSBOM(file)
			if err != nil {
				return nil, err
			}
			sbom.Image = image
			out = append(out, sbom)
			continue
		}
		if hasImage {
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

// checkImageFile returns an error if the pair IMAGE=FILE is incomplete, or if IMAGE is not a valid reference.
func checkImageFile(argument, image, file string) error {
	if _, err := name.ParseReference(image); err != nil || file == "" {
		return exit.Hintf("use IMAGE=FILE, with the image as the catalog names it", "invalid value %q of --sbom",
			argument)
	}
	return nil
}

// readSBOMFolder reads the SBOMs among the JSON files in a folder. It returns an error if there are none.
func readSBOMFolder(dir string) ([]scan.Document, error) {
	var out []scan.Document
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || filepath.Ext(file) != ".json" {
			return err
		}
		sbom, err := readSBOM(file)
		if errors.Is(err, scan.ErrNotSBOM) {
			return nil
		}
		out = append(out, sbom)
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

// readSBOM reads the SBOM in a file of at most maxSBOMBytes.
func readSBOM(file string) (scan.Document, error) {
	var none scan.Document
	f, err := os.Open(file)
	if err != nil {
		return none, fmt.Errorf("read SBOM: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxSBOMBytes+1))
	if err != nil {
		return none, fmt.Errorf("read SBOM: %w", err)
	}
	if len(text) > maxSBOMBytes {
		return none, fmt.Errorf("read SBOM %s: more than %d MiB", file, maxSBOMBytes>>20)
	}
	inventory, err := scan.ReadInventory(text)
	if err != nil {
		return none, fmt.Errorf("read SBOM %s: %w", file, err)
	}
	return scan.Document{File: file, Inventory: inventory}, nil
}

// addAttachedSBOMs adds to contents what registries have for the images that it does not contain.
func (o vulnerabilityOptions) addAttachedSBOMs(ctx context.Context, images []string,
	contents map[string]scan.Contents) error {
	missing := slices.DeleteFunc(slices.Clone(images), func(image string) bool {
		_, isKnown := contents[image]
		return isKnown
	})
	var mu sync.Mutex
	var fetches errgroup.Group
	fetches.SetLimit(maxSBOMFetches)
	client := oci.NewClient(oci.Options{})
	for _, image := range missing {
		fetches.Go(func() error {
			attached := readAttachedSBOMs(ctx, client, image, o.access.Access())
			mu.Lock()
			defer mu.Unlock()
			contents[image] = attached
			return ctx.Err() // attached has its own error for an image whose SBOMs cannot be read
		})
	}
	if err := fetches.Wait(); err != nil {
		return fmt.Errorf("read SBOMs: %w", err)
	}
	return nil
}

// readAttachedSBOMs reads the SBOMs that a registry has for an image. An error is stored as the image's Problem, so
// that the other images are still compared.
func readAttachedSBOMs(ctx context.Context, client *oci.Client, image string, access oci.Access) scan.Contents {
	documents, err := client.SBOMs(ctx, image, access)
	if err != nil {
		return scan.Contents{Problem: phrase.OneLine(err.Error())}
	}
	return scan.ReadContents(documents)
}

// showVulnerabilities prints the report. It returns an error with VulnerabilitiesFound if a vulnerability has at
// least the severity of --fail-on or, with --fail-on-unknown, if something is unknown.
func (a *app) showVulnerabilities(o vulnerabilityOptions, report scan.Report) error {
	if o.out.Table() {
		a.Say("%s", RenderVulnerabilities(report, a.Style(), o.hub, o.out.Wide()))
	} else if err := o.out.Value(a.Streams.Out, report); err != nil {
		return err
	}
	isSevere := o.failOn != failNever && report.HasSeverity(scan.Severity(o.failOn))
	isUnknown := o.failOnUnknown && report.IsUnknown()
	if isSevere || isUnknown {
		return &exit.CodeError{Code: VulnerabilitiesFound}
	}
	return nil
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/publish"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/registry"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const catalogPublishLong = `Publish a catalog and print its digest. DIR contains a compiled catalog, or ladder
files, which are compiled first.

Bundles, catalog, SBOM and signature are pushed by digest first. The tag is moved
last, and only if it was not moved by another user in the meantime. If the command is
interrupted, the tag has not changed. Run the command again.

A catalog is rejected if it would take something away from the users of the tag: if
a package or a channel is missing, if a version is missing that is neither blocked
nor skipped by name, if a version has no upgrade path to the head, or if the content
of a version has changed.

--key signs the catalog with a private key of "bellwether catalog keygen" or of
cosign. The password of an encrypted key is read from COSIGN_PASSWORD or from the
terminal.`

type publishFlags struct {
	access registry.Flags
	out    command.Output
	key    string
	expect string
	force  string
	mirror string
	// repository is where bundle folders are pushed to.
	repository string
	noCheck    bool
}

func (a *app) newPublishCommand() *cobra.Command {
	var f publishFlags
	c := &cobra.Command{
		Use: "publish DIR REF", Short: "Publish a catalog with its SBOM and its signature",
		Long:              catalogPublishLong,
		Args:              command.ExactArgs("the folder of the catalog or of its ladders", "the tag to publish it as"),
		ValidArgsFunction: command.CompleteDir,
		Example: "  bellwether catalog publish ./compiled registry.example.com/catalogs/main:latest --key " +
			"bellwether.key\n" +
			"  bellwether catalog publish ./ladders registry.example.com/catalogs/main:latest --bundle-repository " +
			"registry.example.com/bundles\n" +
			"  bellwether catalog publish ./compiled registry.local/catalogs/main:latest --mirror-bundles " +
			"registry.local/bundles",
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(f.out.Check(), registry.CheckFolder(args[0]),
				registry.CheckTarget(args[1])); err != nil {
				return err
			}
			return a.publish(c.Context(), &f, args[0], args[1])
		},
	}
	f.access.Add(c)
	f.out.Add(c, command.OutputJSON, command.OutputYAML)
	c.Flags().StringVar(&f.key, "key", "", "The `FILE` with the private key. Default: no signature.")
	c.Flags().StringVar(&f.expect, "expect", "",
		"The `DIGEST` that the tag must have now, or none. Default: any digest.")
	c.Flags().StringVar(&f.force, "force", "", "Publish even if versions would be lost, for this `REASON`.")
	c.Flags().StringVar(&f.mirror, "mirror-bundles", "",
		"Copy the bundles to this `REPOSITORY`, and refer to them there in the catalog.")
	c.Flags().StringVar(&f.repository, "bundle-repository", "",
		"Push the bundle folders of ladders to this `REPOSITORY`, instead of inlining them.")
	c.Flags().BoolVar(&f.noCheck, "no-bundle-check", false,
		"Do not check that the bundles exist in their registries.")
	_ = c.RegisterFlagCompletionFunc("expect",
		cobra.FixedCompletions([]string{publish.Nothing}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// publish publishes the catalog in dir at the tag ref: it compiles ladder files and mirrors bundles first if needed.
func (a *app) publish(ctx context.Context, f *publishFlags, dir, ref string) error {
	client := oci.NewClient(oci.Options{})
	in := publish.Input{
		Dir: dir, Ref: ref, Access: f.access.Access(), SkipBundleCheck: f.noCheck, Expect: f.expect, Force: f.force,
	}
	if f.key != "" {
		var err error
		if in.Signer, err = a.readSigner(f.key); err != nil {
			return err
		}
	}
	progress := a.Progress("reading the catalog")
	defer progress.Stop()
	in.Report = func(p publish.Progress) { a.printProgress(progress, p) }
	temp, err := os.MkdirTemp("", "bellwether-catalog-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if folder.HasLadders(dir) {
		in.Dir = filepath.Join(temp, "compiled")
		if err := a.compileLadders(ctx, client, f, dir, &in, progress); err != nil {
			return addLadderHint(err)
		}
	}
	if f.mirror != "" {
		mirrored := filepath.Join(temp, "mirrored")
		if in.Mirrored, err = mirrorCatalog(ctx, client, in.Dir, mirrored, f.mirror); err != nil {
			return addPublishHint(err)
		}
		in.Dir = mirrored
	}
	result, err := publish.Publish(ctx, client, in)
	progress.Stop()
	if err != nil {
		return addPublishHint(err)
	}
	return a.printPublished(&f.out, result)
}

// compileLadders compiles the ladders in dir into in.Dir, with the catalog at the tag as the previous catalog; with
// --force there is no previous catalog. It sets in.Expect and, with --bundle-repository, in.Bundles.
func (a *app) compileLadders(ctx context.Context, client *oci.Client, f *publishFlags, dir string,
	in *publish.Input, progress *command.Progress) error {
	o := folder.Options{
		Bundles: folder.Bundles{Images: client, Access: in.Access, CacheDir: a.findBundleCache(),
			Repository: f.repository},
		Now: a.Now(),
		// An empty slice, because nil would mean the content of the output folder.
		Published: []*catalogs.Package{},
		Progress:  func(done, total int) { progress.Count(done, total, "versions") },
	}
	currentDigest, err := client.TagDigest(ctx, in.Ref, in.Access)
	if err != nil {
		return err
	}
	// The result is only valid as a successor of the catalog that it was compiled against.
	in.Expect = cmp.Or(in.Expect, currentDigest, publish.Nothing)
	if currentDigest != "" && in.Force == "" {
		files, err := f.access.Open(ctx, in.Ref)
		if err != nil {
			return err
		}
		if o.Published, err = catalogs.ReadGraphs(files); err != nil {
			return fmt.Errorf("read %s: %w", in.Ref, err)
		}
	}
	progress.Doing("compiling")
	if _, err := folder.Compile(ctx, dir, in.Dir, o); err != nil {
		return err
	}
	progress.Doing("publishing")
	progress.Print(func() { a.Warn("  compiled the ladders in %s\n", dir) })
	if f.repository != "" {
		in.Bundles, err = listLocalBundles(dir, f.repository)
	}
	return err
}

// listLocalBundles returns the bundle folders of the ladders by the images that the catalog refers to.
func listLocalBundles(dir, repository string) (map[string]string, error) {
	ladders, err := folder.LoadAll(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, l := range ladders {
		for _, b := range l.Ladder.Bundles {
			if b.Path == "" {
				continue
			}
			path := filepath.Join(dir, filepath.FromSlash(b.Path))
			image, err := oci.BundleImage(path)
			if err != nil {
				return nil, err
			}
			digest, err := image.Digest()
			if err != nil {
				return nil, fmt.Errorf("digest bundle %s: %w", path, err)
			}
			out[repository+"@"+digest.String()] = path
		}
	}
	return out, nil
}

// mirrorCatalog writes the catalog in dir to out so that it refers to all bundles in repository. It returns the
// original reference of each bundle by the new reference.
func mirrorCatalog(ctx context.Context, client *oci.Client, dir, out, repository string) (map[string]string, error) {
	source := oci.Source{Directory: dir}
	digest, err := client.Resolve(ctx, source)
	if err != nil {
		return nil, err
	}
	files, err := client.Open(ctx, source, digest)
	if err != nil {
		return nil, err
	}
	return publish.Mirror(files, out, repository)
}

// printProgress prints each step. If there are more than maxLines bundles, it prints a line only after each
// maxLines-th part of the bundles.
func (a *app) printProgress(line *command.Progress, p publish.Progress) {
	const maxLines = 20
	line.Doing("publishing")
	if p.Stage == publish.StageBundles {
		line.Count(p.Done, p.Total, "bundles")
	}
	if p.Stage == publish.StageBundles && p.Total > maxLines {
		if isNextPart := p.Done*maxLines/p.Total != (p.Done-1)*maxLines/p.Total; isNextPart {
			line.Print(func() { a.Warn("  bundles: %d of %d\n", p.Done, p.Total) })
		}
		return
	}
	line.Print(func() { a.Warn("  %s\n", p.Text) })
}

// printPublished prints the result of a publication, with the digest on the standard output.
func (a *app) printPublished(out *command.Output, r publish.Result) error {
	if !out.Table() {
		return out.Value(a.Streams.Out, r)
	}
	message := fmt.Sprintf("Published %s with %s as %s.", phrase.Count(r.Packages, "package"),
		phrase.Count(r.Bundles, "bundle"),
		r.Ref)
	if !r.Changed {
		message = fmt.Sprintf("%s already has this catalog.", r.Ref)
	}
	if r.Unsigned {
		message += " The catalog is not signed, but the previous one was: clusters that require a signature do not " +
			"use it. Publish it again with --key."
	}
	for _, l := range r.Losses {
		a.Warn("  forced: %s\n", l)
	}
	a.Warn("%s\n", message)
	a.Say("%s\n", r.Digest)
	return nil
}

// addPublishHint adds to an error a hint how the catalog can be published.
func addPublishHint(err error) error {
	var losses *publish.LossError
	switch {
	case errors.As(err, &losses):
		var text strings.Builder
		for i, l := range losses.Losses {
			if i == 20 {
				fmt.Fprintf(&text, "\n  and %d more", len(losses.Losses)-i)
				break
			}
			fmt.Fprintf(&text, "\n  %s", l)
		}
		return exit.Hint(fmt.Errorf("%w; users of the tag would lose:%s", publish.ErrContinuity, text.String()),
			"block or retire these versions and compile again, or use --force REASON to publish anyway")
	case errors.Is(err, oci.ErrMoved):
		return exit.Hint(err, "somebody else has published in the meantime: check the new catalog with "+
			"`bellwether catalog show`, compile again, and publish again")
	case errors.Is(err, publish.ErrMissingBundles):
		return exit.Hint(err, "push the bundles first (`bellwether bundle push`), copy them with --mirror-bundles, or "+
			"skip this check with --no-bundle-check")
	case errors.Is(err, publish.ErrNoDigest):
		return exit.Hint(err, "refer to bundles by digest: NAME@sha256:...")
	default:
		return registry.AddHint(err)
	}
}

// readSigner reads a private key. It prompts for the password if the environment does not have it.
func (a *app) readSigner(file string) (*sign.Signer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Hint(fmt.Errorf("read private key: %w", err),
			"to create a key, run `bellwether catalog keygen`")
	}
	signer, err := sign.NewSigner(text, func() ([]byte, error) { return a.readPassword("Password of " + file) })
	switch {
	case errors.Is(err, sign.ErrPassword):
		return nil, exit.Hint(fmt.Errorf("%s: %w", file, err), "set COSIGN_PASSWORD")
	case errors.Is(err, sign.ErrBadKey):
		return nil, exit.Hint(fmt.Errorf("%s: %w", file, err),
			"use a private key; to create one, run `bellwether catalog keygen`")
	}
	return signer, err
}

// PasswordVariable is the environment variable with the password of a signing key. cosign has the same variable.
const PasswordVariable = "COSIGN_PASSWORD"

// readPassword returns the password in the environment, or else the password that
// the user types; empty if there is no terminal.
func (a *app) readPassword(prompt string) ([]byte, error) {
	if password := a.Getenv(PasswordVariable); password != "" {
		return []byte(password), nil
	}
	in, ok := a.Streams.In.(*os.File)
	if !ok || !xterm.IsTerminal(int(in.Fd())) {
		return nil, nil
	}
	a.Warn("%s: ", prompt)
	typed, err := xterm.ReadPassword(int(in.Fd()))
	a.Warn("\n")
	if err != nil {
		return nil, fmt.Errorf("read password: %w", err)
	}
	return typed, nil
}

const catalogKeygenLong = `Create a key to sign catalogs. The private key NAME.key is encrypted in the format
of cosign. The public key NAME.pub belongs in spec.verification.publicKeys of the
OperatorCatalog.

The password is read from COSIGN_PASSWORD or from the terminal.`

func (a *app) newKeygenCommand() *cobra.Command {
	var algorithm string
	var unprotected bool
	c := &cobra.Command{
		Use: "keygen [NAME]", Short: "Create a key to sign catalogs", Long: catalogKeygenLong,
		Args:              command.AtMostOne,
		Example:           "  bellwether catalog keygen release",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.generateKey(strings.Join(args, ""), sign.Algorithm(algorithm), unprotected)
		},
	}
	c.Flags().StringVar(&algorithm, "algorithm", string(sign.ECDSA), "The algorithm of the key: ecdsa-p256 or ed25519.")
	c.Flags().BoolVar(&unprotected, "no-password", false, "Do not encrypt the private key.")
	_ = c.RegisterFlagCompletionFunc("algorithm",
		cobra.FixedCompletions([]string{string(sign.ECDSA), string(sign.Ed25519)}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// generateKey writes a new key pair to name.key and name.pub; an empty name means bellwether. Unless unprotected is
// set, it reads a password for the private key. If the public key cannot be written, it removes the private key.
func (a *app) generateKey(name string, algorithm sign.Algorithm, unprotected bool) error {
	if name == "" {
		name = "bellwether"
	}
	var password []byte
	if !unprotected {
		var err error
		if password, err = a.readNewPassword(); err != nil {
			return err
		}
	}
	pair, err := sign.GenerateKey(algorithm, password)
	if err != nil {
		return err
	}
	if err := writeNewFile(name+".key", pair.Private, 0o600); err != nil {
		return err
	}
	if err := writeNewFile(name+".pub", pair.Public, 0o644); err != nil {
		return errors.Join(err, os.Remove(name+".key"))
	}
	a.Say("Wrote the private key to %s.key. Keep it secret.\nWrote the public key to %s.pub. Add it to "+
		"spec.verification.publicKeys of the OperatorCatalog.\n", name, name)
	return nil
}

// readNewPassword reads a password twice, and returns an error if it is empty or the inputs differ.
func (a *app) readNewPassword() ([]byte, error) {
	password, err := a.readPassword("New password")
	if err != nil {
		return nil, err
	}
	if len(password) == 0 {
		return nil, exit.Hintf("set COSIGN_PASSWORD or --no-password", "no password for the private key")
	}
	repeated, err := a.readPassword("Repeat the password")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(password, repeated) {
		return nil, exit.Hintf("try again", "the passwords are different")
	}
	return password, nil
}

// writeNewFile writes a file that must not exist yet, because an overwritten key is lost.
func writeNewFile(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return exit.Hintf("use another name", "file %s already exists", path)
	}
	if err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

const catalogVerifyLong = `Check a published catalog:

  signature  the catalog is signed by one of the keys of --key
  catalog    every package is valid: each channel has one head, and every version has an upgrade path to it
  sbom       the attached SBOM belongs to this catalog
  bundles    the bundles exist in their registries, by digest, with all their layers;
             with --deep, every layer is read and compared with its digest
  upgrades   OLM v0 and OLM v1 choose the planned upgrade path from every version

Exit codes:
  0  no check failed
  1  a check failed
  2  the catalog cannot be read`

type verifyFlags struct {
	access  registry.Flags
	out     command.Output
	keys    []string
	noCheck bool
	deep    bool
}

func (a *app) newVerifyCommand() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use: "verify REF|DIR", Short: "Check the signature, the content and the upgrade graphs of a catalog",
		Long: catalogVerifyLong,
		Args: command.OneArg("the catalog's reference or folder"), ValidArgsFunction: command.CompleteDir,
		Example: "  bellwether catalog verify registry.example.com/catalogs/main:latest --key bellwether.pub",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.out.Check(); err != nil {
				return err
			}
			report, err := a.verifyCatalog(c.Context(), &f, args[0])
			if err != nil {
				return registry.AddHint(err)
			}
			return a.printVerification(&f.out, report)
		},
	}
	f.access.Add(c)
	f.out.Add(c, command.OutputJSON, command.OutputYAML)
	c.Flags().StringArrayVar(&f.keys, "key", nil,
		"The `FILE` with the public key. If it is repeated, one of the keys must match. Can be repeated.")
	c.Flags().BoolVar(&f.noCheck, "no-bundle-check", false,
		"Do not check that the bundles exist in their registries.")
	c.Flags().BoolVar(&f.deep, "deep", false, "Read every layer of every bundle and compare it with its digest.")
	command.ExcludeFlags(c, "deep", "no-bundle-check")
	return a.SetErrorCode(ExitTrouble, c)
}

// verifyCatalog checks a published catalog. A failed check is part of the report, not an error.
func (a *app) verifyCatalog(ctx context.Context, f *verifyFlags, text string) (publish.Report, error) {
	source, err := f.access.Source(text)
	if err != nil {
		return publish.Report{}, err
	}
	for _, file := range f.keys {
		key, err := os.ReadFile(file)
		if err != nil {
			return publish.Report{}, fmt.Errorf("read public key: %w", err)
		}
		if _, err := sign.ParseKeys(key); err != nil {
			return publish.Report{}, exit.Hint(fmt.Errorf("%s: %w", file, err),
				"use a public key, for example bellwether.pub")
		}
		source.Verification.PublicKeys = append(source.Verification.PublicKeys, key)
	}
	progress := a.Progress("reading the catalog")
	defer progress.Stop()
	return publish.Verify(ctx, oci.NewClient(oci.Options{}),
		publish.VerifyInput{Source: source, SkipBundleCheck: f.noCheck, Deep: f.deep,
			Report: func(done, total int, unit string) {
				progress.Doing("checking")
				progress.Count(done, total, unit)
			}})
}

// printVerification prints the report, and returns an error with exit code 1 if a check failed.
func (a *app) printVerification(out *command.Output, r publish.Report) error {
	if out.Table() {
		a.Say("%s", formatVerification(r, a.Style()))
	} else if err := out.Value(a.Streams.Out, r); err != nil {
		return err
	}
	if r.OK() {
		return nil
	}
	return &exit.CodeError{Code: 1}
}

// maxDetails limits how many details of a check are printed; -o json has all.
const maxDetails = 10

// formatVerification returns a line for each check, with its details.
func formatVerification(r publish.Report, style term.Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s is %s\n", r.Ref, r.Digest)
	for _, c := range r.Checks {
		mark, tone := chooseMark(c.Verdict)
		fmt.Fprintf(&out, "%s %-10s %s\n", style.Paint(tone, mark), c.Name, c.Text)
		for i, d := range c.Details {
			if i == maxDetails {
				fmt.Fprintf(&out, "             %s\n",
					style.Paint(term.Dim, fmt.Sprintf("and %d more; -o json has them all", len(c.Details)-i)))
				break
			}
			fmt.Fprintf(&out, "             %s\n", d)
		}
	}
	return out.String()
}

// chooseMark returns the mark and the tone for the result of a check.
func chooseMark(v publish.Verdict) (string, term.Tone) {
	switch v {
	case publish.Passed:
		return "✓", term.Good
	case publish.Failed:
		return "✗", term.Bad
	case publish.Warning:
		return "!", term.Warn
	default:
		return "·", term.Dim
	}
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"gocloud.dev/blob"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/bellwether-dev/bellwether/backups/archive"
	"github.com/bellwether-dev/bellwether/backups/restore"
	"github.com/bellwether-dev/bellwether/backups/store"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// backupSource is a backup in a store.
type backupSource struct {
	location string
	// manifest is the manifest's SHA-256 that the hub recorded; empty if the hub was not queried.
	manifest string
	identity string
}

func (s *backupSource) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&s.location, "location", "",
		"The URL of the backup's folder, where it is not at the location that the hub knows.")
	c.Flags().StringVar(&s.identity, "identity", "", "The `FILE` with the identity of age that decrypts the backup.")
	_ = c.MarkFlagFilename("identity")
}

// locateBackup sets the manifest and, unless --location is set, the location of a backup from the arguments CLUSTER
// NAME. It returns an error if the backup is not complete. Without arguments, --location is required.
func (a *app) locateBackup(ctx context.Context, s *backupSource, args []string) error {
	if len(args) == 0 {
		if s.location == "" {
			return exit.Hintf("name a cluster and a backup, or set --location", "no backup is named")
		}
		return nil
	}
	b, err := a.readBackup(ctx, args[0], args[1])
	if err != nil {
		return err
	}
	if b.Status.VerifiedAt == nil {
		return exit.Hintf("to see its state, run `"+a.Self+" backup show "+args[0]+" "+args[1]+"`",
			"backup %q is not complete", b.Name)
	}
	s.manifest = b.Status.Manifest
	if s.location == "" {
		s.location = b.Status.Location
	}
	return nil
}

// openBackup opens the store of a backup, and reads the manifest and the identities that decrypt the backup. It
// returns an error if the manifest is not the manifest that the hub recorded. The caller closes the bucket.
func (s *backupSource) openBackup(ctx context.Context) (*blob.Bucket, *archive.Manifest, []age.Identity, error) {
	identities, err := s.readIdentities()
	if err != nil {
		return nil, nil, nil, err
	}
	if dir, isFolder := strings.CutPrefix(s.location, "file://"); isFolder {
		if _, err := os.Stat(dir); err != nil {
			return nil, nil, nil, exit.Hintf("if the folder is a volume of the agent, copy it from there and set "+
				"--location", "open the backup: %w", err)
		}
	}
	bucket, err := store.Open(ctx, s.location, store.Credentials{})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("open the store: %w", err)
	}
	m, sum, err := archive.Open(ctx, bucket)
	if err == nil && s.manifest != "" && sum != s.manifest {
		err = fmt.Errorf("%w: the manifest has SHA-256 %s, and the hub knows %s", archive.ErrDamaged, sum, s.manifest)
	}
	if err != nil {
		_ = bucket.Close() // the error does not matter, because nothing was written
		return nil, nil, nil, err
	}
	return bucket, m, identities, nil
}

// readIdentities reads the file in --identity; nil if the flag is not set.
func (s *backupSource) readIdentities() ([]age.Identity, error) {
	if s.identity == "" {
		return nil, nil
	}
	file, err := os.Open(s.identity)
	if err != nil {
		return nil, fmt.Errorf("open the identity: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	identities, err := age.ParseIdentities(file)
	if err != nil {
		return nil, fmt.Errorf("read the identity: %w", err)
	}
	return identities, nil
}

// checkClusterAndName requires either both arguments or none.
func checkClusterAndName(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return command.ExactArgs("the cluster's name", "the backup's name")(c, args)
}

const verifyLong = `Read a backup from its store and compare it with its checksums.

An encrypted backup is compared as it is stored. With --identity it is decrypted
and read as well.

The credentials of an S3 store are those of your environment.`

func (a *app) newVerifyCommand() *cobra.Command {
	var s backupSource
	c := &cobra.Command{
		Use: "verify [CLUSTER NAME]", Short: "Check that a backup is complete and was not changed", Long: verifyLong,
		Args: checkClusterAndName, ValidArgsFunction: a.Complete(command.ListClusterNames, command.ListBackupNames),
		Example: "  bellwether backup verify prod-1 team.echo.20260301-030000\n" +
			"  bellwether backup verify --location file:///backups/prod-1/team.echo/team.echo.20260301-030000",
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.locateBackup(c.Context(), &s, args); err != nil {
				return err
			}
			return a.verifyBackup(c.Context(), &s)
		},
	}
	s.addFlags(c)
	return c
}

// verifyBackup reads a backup and compares it with its checksums.
func (a *app) verifyBackup(ctx context.Context, s *backupSource) error {
	bucket, m, identities, err := s.openBackup(ctx)
	if err != nil {
		return err
	}
	defer bucket.Close() //nolint:errcheck // nothing was written
	detail := "It was read completely."
	if m.Content.Encrypted && len(identities) == 0 {
		detail = "It was compared as it is stored; set --identity to decrypt it as well."
		err = archive.Check(ctx, bucket, m)
	} else {
		err = archive.Read(ctx, bucket, m, identities, func([]byte) error { return nil })
	}
	if err != nil {
		return err
	}
	a.Step("%d objects of %s, taken %s, are as they were written. %s", m.Objects(), m.Bundle,
		term.Instant(m.TakenAt), detail)
	return nil
}

// restoreOptions are the flags of backup restore.
type restoreOptions struct {
	backupSource
	target           hub.ClusterFlags
	dryRun           bool
	createNamespaces bool
	output           command.Output
}

const restoreLong = `Restore the custom resources of a backup.

Objects that are gone are created. Objects that exist get the fields back that they
have lost; a value that they have is never changed, and nothing is deleted. Begin
with --dry-run, which prints what would be done and changes nothing.

The cluster is the one of --cluster-kubeconfig. It can be another one than the backup
was taken on; the CustomResourceDefinitions of the operator must exist there. Your
user needs the permissions to read and write the custom resources and their status.
The credentials of an S3 store are those of your environment.

Exit codes:
  0  everything is restored
  1  an error, or some objects could not be restored`

func (a *app) newRestoreCommand() *cobra.Command {
	var o restoreOptions
	c := &cobra.Command{
		Use: "restore [CLUSTER NAME]", Short: "Restore custom resources from a backup", Long: restoreLong,
		Args: checkClusterAndName, ValidArgsFunction: a.Complete(command.ListClusterNames, command.ListBackupNames),
		Example: "  bellwether backup restore prod-1 team.echo.20260301-030000 --cluster-kubeconfig " +
			"prod-1.kubeconfig --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.output.Check(); err != nil {
				return err
			}
			if !o.target.IsSet() {
				return exit.Hintf("set --cluster-kubeconfig", "no kubeconfig for the cluster")
			}
			if err := a.locateBackup(c.Context(), &o.backupSource, args); err != nil {
				return err
			}
			return a.restoreBackup(c.Context(), &o)
		},
	}
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "Print what would be done, and change nothing.")
	c.Flags().BoolVar(&o.createNamespaces, "create-namespaces", false, "Create namespaces that do not exist.")
	o.addFlags(c)
	o.target.Add(c)
	o.output.Add(c, command.OutputJSON, command.OutputYAML)
	return c
}

var errIncomplete = errors.New("some objects could not be restored")

// restoreBackup restores a backup on the cluster, and returns an error if some objects could not be restored.
func (a *app) restoreBackup(ctx context.Context, o *restoreOptions) error {
	bucket, m, identities, err := o.openBackup(ctx)
	if err != nil {
		return err
	}
	defer bucket.Close() //nolint:errcheck // nothing was written
	cluster, err := o.connectCluster()
	if err != nil {
		return err
	}
	options := restore.Options{Identities: identities, DryRun: o.dryRun, CreateNamespaces: o.createNamespaces}
	if o.output.Table() {
		options.Observe = func(r restore.Result) {
			if line := FormatResult(r, o.dryRun); line != "" {
				a.Say("%s\n", line)
			}
		}
	}
	report, err := restore.Run(ctx, cluster, bucket, m, options)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if o.output.Table() {
		a.Say("%s", FormatReport(report))
	} else if err := o.output.Value(a.Streams.Out, report); err != nil {
		return err
	}
	if report.Failed > 0 {
		return errIncomplete
	}
	return nil
}

// connectCluster returns the client and the REST mapper for the cluster.
func (o *restoreOptions) connectCluster() (restore.Cluster, error) {
	config, err := o.target.Flags("").ToRESTConfig()
	if err != nil {
		return restore.Cluster{}, exit.Hintf("check --cluster-kubeconfig and --cluster-context",
			"read the cluster's kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server limits a restore, not its client
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return restore.Cluster{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return restore.Cluster{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return restore.Cluster{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	return restore.Cluster{Client: dynamicClient, Mapper: mapper}, nil
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/backups/archive"
)

// TestLocationIsTheClusters opens, as retention does before it deletes everything there, the folders that a status
// names. The hub's API server may have written it.
func TestLocationIsTheClusters(t *testing.T) {
	first, second := "file://"+t.TempDir(), "file://"+t.TempDir()
	const bucket = "s3://backups/fleet?region=eu-central-1"
	for name, test := range map[string]struct {
		location string
		change   func(*v1alpha1.OperatorBackup)
		opens    bool
	}{
		"its own folder":                       {location: first + "/mine/team.echo/one", opens: true},
		"in a store that is not the first one": {location: second + "/mine/team.echo/one", opens: true},
		"in a bucket": {opens: true,
			location: "s3://backups/fleet/mine/team.echo/one?region=eu-central-1"},
		"in the store that it names": {location: second + "/below/mine/team.echo/one", opens: true,
			change: func(b *v1alpha1.OperatorBackup) { b.Spec.Store = second + "/below/" }},
		"in another store than it names": {location: first + "/mine/team.echo/one",
			change: func(b *v1alpha1.OperatorBackup) { b.Spec.Store = second }},
		"in a store that is not allowed": {location: "file:///srv/mine/team.echo/one",
			change: func(b *v1alpha1.OperatorBackup) { b.Spec.Store = "file:///srv" }},
		"of another cluster":             {location: first + "/victim/team.echo/one"},
		"of another cluster in a bucket": {location: "s3://backups/fleet/victim/team.echo/one?region=eu-central-1"},
		"of another operator":            {location: first + "/mine/team.other/one"},
		"of another backup":              {location: first + "/mine/team.echo/two"},
		"of all backups of the operator": {location: first + "/mine/team.echo"},
		"of the cluster":                 {location: first + "/mine"},
		"the store":                      {location: first},
		"by way of its own":              {location: first + "/mine/team.echo/one/../../../victim/team.echo/one"},
		"by way of its own, encoded":     {location: first + "/mine/team.echo/one/%2e%2e/%2e%2e/%2e%2e/victim/team.echo/one"},
		"below its own":                  {location: first + "/mine/team.echo/one/more"},
		"with a slash":                   {location: first + "/mine/team.echo/one/"},
		"with an option": {
			location: "s3://backups/fleet/mine/team.echo/one?region=eu-central-1&endpoint=http://evil"},
		"another region": {location: "s3://backups/fleet/mine/team.echo/one?region=us-east-1"},
		"everything":     {location: "file:///"},
		"none":           {location: ""},
		"no URL":         {location: ":"},
		"an operator whose name is a way": {location: first + "/victim/team.echo/one",
			change: func(b *v1alpha1.OperatorBackup) {
				b.Spec.Operator = v1alpha1.OperatorReference{Namespace: "x/../../victim/team", Name: "echo"}
			}},
		"a backup whose name is a way": {location: first + "/victim/team.echo/one",
			change: func(b *v1alpha1.OperatorBackup) { b.Name = "../../victim/team.echo/one" }},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.OperatorBackup{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.OperatorBackupSpec{
				Operator: v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}}}
			b.Status.Location = test.location
			if test.change != nil {
				test.change(b)
			}
			opened, err := Stores{Cluster: "mine", Allowed: []string{first, bucket, second}}.OpenTaken(t.Context(), b)
			if err == nil {
				defer opened.Close() //nolint:errcheck // nothing was written
			}
			if (err == nil) != test.opens || err != nil && !errors.Is(err, archive.ErrStore) {
				t.Errorf("%s: error %v, opens %t, want %t", test.location, err, err == nil, test.opens)
			}
		})
	}
	if made, _ := filepath.Glob(filepath.Join(first[len("file://"):], "victim*")); len(made) > 0 {
		t.Errorf("folders of another cluster were opened: %v", made)
	}
	if _, err := os.Stat("/srv/mine"); err == nil {
		t.Error("a store that is not allowed was opened")
	}
}

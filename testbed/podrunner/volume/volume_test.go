// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// fakeSource holds objects by name; the token says how often it was asked for.
type fakeSource struct {
	secrets, configMaps map[string]map[string][]byte
	tokens              int
	expires             time.Time
}

func (f *fakeSource) Secret(_ context.Context, _, name string) (map[string][]byte, error) {
	return find(f.secrets, name)
}

func (f *fakeSource) ConfigMap(_ context.Context, _, name string) (map[string][]byte, error) {
	return find(f.configMaps, name)
}

func (f *fakeSource) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) ([]byte, time.Time,
	error) {
	f.tokens++
	return []byte{byte('0' + f.tokens)}, f.expires, nil
}

func find(objects map[string]map[string][]byte, name string) (map[string][]byte, error) {
	if data, ok := objects[name]; ok {
		return data, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, name)
}

// tree returns the files below dir.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func secretVolume(name string, optional *bool, items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Items: items, Optional: optional}}
}

func TestSync(t *testing.T) {
	src := &fakeSource{
		secrets:    map[string]map[string][]byte{"s": {"a": []byte("1"), "b": []byte("2")}},
		configMaps: map[string]map[string][]byte{"m": {"c": []byte("3")}},
	}
	tests := map[string]struct {
		source  corev1.VolumeSource
		want    map[string]string
		wantErr bool
	}{
		"secret": {secretVolume("s", nil), map[string]string{"a": "1", "b": "2"}, false},
		"items": {secretVolume("s", nil, corev1.KeyToPath{Key: "b", Path: "sub/x"}),
			map[string]string{"sub/x": "2"}, false},
		"missing":     {secretVolume("no", nil), nil, true},
		"missing key": {secretVolume("s", nil, corev1.KeyToPath{Key: "no", Path: "x"}), nil, true},
		"optional":    {secretVolume("no", ptr.To(true)), map[string]string{}, false},
		"config map": {
			corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}},
			},
			map[string]string{"c": "3"},
			false,
		},
		"empty": {corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, map[string]string{}, false},
		"downward API": {
			corev1.VolumeSource{
				DownwardAPI: &corev1.DownwardAPIVolumeSource{
					Items: []corev1.DownwardAPIVolumeFile{
						{Path: "ns", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
					},
				},
			},
			map[string]string{"ns": "ns"},
			false,
		},
		"projected": {corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}},
		}}}, map[string]string{"token": "1", "c": "3"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: corev1.PodSpec{
				Volumes: []corev1.Volume{{Name: "v", VolumeSource: tt.source}}}}
			vs := New(src, t.TempDir(), t.TempDir())
			err := vs.Sync(t.Context(), pod)
			if (err != nil) != tt.wantErr {
				t.Fatalf("error = %v, want one: %t", err, tt.wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tt.want, tree(t, vs.Dir(pod, "v"))); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnsupported(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		Name: "v", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}}}}}
	if err := New(&fakeSource{}, t.TempDir(), t.TempDir()).Sync(t.Context(), pod); !errors.Is(err, ErrUnsupported) {
		t.Errorf("error = %v, want ErrUnsupported", err)
	}
}

// A volume follows its object, and a file that did not change is not touched.
func TestSyncFollows(t *testing.T) {
	src := &fakeSource{secrets: map[string]map[string][]byte{"s": {"stays": []byte("1"), "goes": []byte("2"),
		"changes": []byte("3")}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v",
		VolumeSource: secretVolume("s", nil)}}}}
	vs := New(src, t.TempDir(), t.TempDir())
	if err := vs.Sync(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	stays := filepath.Join(vs.Dir(pod, "v"), "stays")
	old := time.Unix(1, 0)
	if err := os.Chtimes(stays, old, old); err != nil {
		t.Fatal(err)
	}
	src.secrets["s"] = map[string][]byte{"stays": []byte("1"), "changes": []byte("4"), "comes": []byte("5")}
	if err := vs.Sync(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"stays": "1", "changes": "4", "comes": "5"}
	if diff := cmp.Diff(want, tree(t, vs.Dir(pod, "v"))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(stays); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("unchanged file was written again: %v, %v", info.ModTime(), err)
	}
}

func TestTokenIsRenewed(t *testing.T) {
	start := time.Unix(1000, 0)
	src := &fakeSource{expires: start.Add(100 * time.Second)}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}}}}
	vs := New(src, t.TempDir(), t.TempDir())
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "1"}, {79 * time.Second, "1"}, {80 * time.Second, "2"}} {
		vs.now = func() time.Time { return start.Add(step.after) }
		if err := vs.Sync(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, vs.Dir(pod, "v"))["token"]; got != step.want {
			t.Errorf("after %s the token is number %s, want %s", step.after, got, step.want)
		}
	}
}

// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volume lays a pod's volumes out as folders of the host. It reads the
// objects that they come from and writes files; it starts nothing and decides
// nothing about the pod.
package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ErrUnsupported is returned for a volume of a kind that the testbed lacks.
var ErrUnsupported = errors.New("volume type is not supported by the pod runner")

// Source reads what volumes are made of.
type Source interface {
	Secret(ctx context.Context, namespace, name string) (map[string][]byte, error)
	ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// Token returns a token of the pod's service account, bound to the pod.
	Token(ctx context.Context, pod *corev1.Pod, p *corev1.ServiceAccountTokenProjection) (token []byte,
		expires time.Time, err error)
}

// Volumes are the volumes of one pod. Its methods are for one goroutine,
// except Dir.
type Volumes struct {
	dir    string // of the pod
	claims string // of persistent volume claims, shared by pods
	src    Source
	now    func() time.Time
	tokens map[string]token // by volume and path
}

type token struct {
	data          []byte
	issued, until time.Time
}

// New returns the volumes of a pod whose folder is dir.
func New(src Source, dir, claims string) *Volumes {
	return &Volumes{dir: dir, claims: claims, src: src, now: time.Now, tokens: map[string]token{}}
}

// Dir returns the folder of the volume v.
func (vs *Volumes) Dir(pod *corev1.Pod, name string) string {
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Name != name:
		case v.HostPath != nil:
			return v.HostPath.Path
		case v.PersistentVolumeClaim != nil:
			return filepath.Join(vs.claims, pod.Namespace+"_"+v.PersistentVolumeClaim.ClaimName)
		}
	}
	return filepath.Join(vs.dir, "volumes", name)
}

// Sync brings every volume up to date: it makes the folders, and writes the
// files of those made of objects if they differ. Each file is replaced as a
// whole. A missing object that is not optional is an error.
func (vs *Volumes) Sync(ctx context.Context, pod *corev1.Pod) error {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if err := vs.syncOne(ctx, pod, v); err != nil {
			return fmt.Errorf("mount volume %q: %w", v.Name, err)
		}
	}
	return nil
}

func (vs *Volumes) syncOne(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) error {
	dir := vs.Dir(pod, v.Name)
	switch {
	case v.HostPath != nil:
		return nil
	case v.EmptyDir != nil, v.PersistentVolumeClaim != nil:
		return os.MkdirAll(dir, 0o700)
	}
	files, err := vs.files(ctx, pod, v)
	if err != nil {
		return err
	}
	return write(dir, files)
}

// files returns the content of a volume that is made of objects, by path.
func (vs *Volumes) files(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (map[string][]byte, error) {
	files := map[string][]byte{}
	var err error
	switch {
	case v.Secret != nil:
		err = vs.addSecret(ctx, pod, files, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.ConfigMap != nil:
		err = vs.addConfigMap(ctx, pod, files, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.DownwardAPI != nil:
		err = addFields(pod, files, v.DownwardAPI.Items)
	case v.Projected != nil:
		for _, p := range v.Projected.Sources {
			err = errors.Join(err, vs.addProjection(ctx, pod, files, v.Name, p))
		}
	default:
		err = ErrUnsupported
	}
	return files, err
}

func (vs *Volumes) addProjection(ctx context.Context, pod *corev1.Pod, files map[string][]byte, volume string,
	p corev1.VolumeProjection) error {
	switch {
	case p.Secret != nil:
		return vs.addSecret(ctx, pod, files, p.Secret.Name, p.Secret.Items, p.Secret.Optional)
	case p.ConfigMap != nil:
		return vs.addConfigMap(ctx, pod, files, p.ConfigMap.Name, p.ConfigMap.Items, p.ConfigMap.Optional)
	case p.DownwardAPI != nil:
		return addFields(pod, files, p.DownwardAPI.Items)
	case p.ServiceAccountToken != nil:
		data, err := vs.token(ctx, pod, volume, p.ServiceAccountToken)
		if err != nil {
			return fmt.Errorf("request token: %w", err)
		}
		files[p.ServiceAccountToken.Path] = data
		return nil
	default:
		return ErrUnsupported
	}
}

// token returns the token at hand until four fifths of its life are over, as a
// kubelet does.
func (vs *Volumes) token(ctx context.Context, pod *corev1.Pod, volume string,
	p *corev1.ServiceAccountTokenProjection) ([]byte, error) {
	key, now := volume+"/"+p.Path, vs.now()
	if t, ok := vs.tokens[key]; ok && now.Before(t.issued.Add(t.until.Sub(t.issued)*4/5)) {
		return t.data, nil
	}
	data, until, err := vs.src.Token(ctx, pod, p)
	if err != nil {
		return nil, err
	}
	vs.tokens[key] = token{data: data, issued: now, until: until}
	return data, nil
}

// write makes dir hold exactly files.
func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	for name, data := range files {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), data); err != nil {
			return err
		}
	}
	return prune(dir, files)
}

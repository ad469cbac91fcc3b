// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorCatalog is a published file-based catalog.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=oc,categories=bellwether
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Packages",type=integer,JSONPath=`.status.packageCount`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.status.digest`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.source.image`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorCatalog struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OperatorCatalogSpec `json:"spec"`
	// +optional
	Status OperatorCatalogStatus `json:"status,omitempty"`
}

// OperatorCatalogSpec defines where the catalog is, which signatures it needs, and which of its versions are blocked.
//
// +kubebuilder:validation:XValidation:rule="!has(self.verification) || has(self.source.image)",message="verification needs source.image: only an image in a registry has signatures"
type OperatorCatalogSpec struct {
	Source CatalogSource `json:"source"`

	// PollInterval is how often a tag or a directory is read again. A reference by digest is read once. At least 5s;
	// default 1m.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s')",message="pollInterval must be at least 5s"
	// +optional
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`

	// Verification makes the hub and every agent refuse a catalog without a valid signature. If it is not set,
	// signatures are ignored.
	// +optional
	Verification *CatalogVerification `json:"verification,omitempty"`

	// Blocks take effect at once, also on clusters that are being upgraded: no cluster is upgraded to a blocked
	// version, nor through one. A cluster that runs a blocked version keeps it until there is a version to
	// upgrade to.
	// +listType=map
	// +listMapKey=package
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Blocks []VersionBlock `json:"blocks,omitempty"`
}

// CatalogVerification defines which signatures a catalog must have.
type CatalogVerification struct {
	// PublicKeys are ECDSA P-256 or Ed25519 keys in PEM, in the format of `bellwether catalog keygen` and `cosign
	// generate-key-pair`. A signature by one of them is enough, so that keys can be replaced: add the new key, sign
	// with it, and remove the old key.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^\s*-----BEGIN PUBLIC KEY-----`
	PublicKeys []string `json:"publicKeys"`
}

// VersionBlock prevents upgrades to a version, with the reason.
type VersionBlock struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Package string `json:"package"`
	// Version as the catalog writes it, such as 1.2.3.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// Reason is shown to users who run the version or request it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason"`
	// Expires is the day, such as 2026-12-31, on which a person must review the block. From that day on (UTC) it is
	// reported, and stays in force: a block is never removed automatically.
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
	// +kubebuilder:validation:MaxLength=10
	// +optional
	Expires string `json:"expires,omitempty"`
	// Instead is the version that clusters should go to; empty means any version that the channel offers.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Instead string `json:"instead,omitempty"`
}

// CatalogSource is where a file-based catalog is read from: either an OCI image or a directory.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) != has(self.directory)",message="set exactly one of image and directory"
// +kubebuilder:validation:XValidation:rule="!has(self.pullSecret) || has(self.image)",message="pullSecret needs image"
type CatalogSource struct {
	// Image is an OCI reference, by tag or by digest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.contains('://')",message="image is an OCI reference without a scheme, such as registry.example.com/catalogs/main:latest"
	// +optional
	Image string `json:"image,omitempty"`

	// Directory is an absolute path that the hub and every agent can read. It is for tests and for agents that run
	// next to the hub.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="directory must be an absolute path"
	// +optional
	Directory string `json:"directory,omitempty"`

	// Insecure allows plain HTTP to the registry.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// PullSecret names a Secret of type kubernetes.io/dockerconfigjson with which the catalog and its bundles are
	// read. The hub reads it from the OperatorCatalog's namespace, and an agent from its own namespace on its
	// cluster; both need the permission to read it. No other login is used then. If empty, the hub and the agent use
	// their own logins, if they have any.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	PullSecret string `json:"pullSecret,omitempty"`
}

// OperatorCatalogStatus describes the catalog that the hub read.
type OperatorCatalogStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Reconciling, Stalled, and BlockedVersionInUse while clusters run a blocked version.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Digest of the catalog that is in use, "sha256:" and hex. A catalog that cannot be read, contradicts itself,
	// lacks a signature or has no upgrade path for a cluster never replaces a good catalog.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Digest string `json:"digest,omitempty"`

	// Source is where Digest was read from: the source in the spec, unless that was changed to a source with an
	// invalid catalog.
	// +optional
	Source *CatalogSource `json:"source,omitempty"`

	// LastReadTime is when Digest was first read.
	// +optional
	LastReadTime *metav1.Time `json:"lastReadTime,omitempty"`

	// +optional
	PackageCount int32 `json:"packageCount"`

	// Packages are sorted by name; the first 500.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	// +optional
	Packages []CatalogPackage `json:"packages,omitempty"`

	// BlockedVersions are the blocks in force, the blocks with the most clusters first: all of spec.blocks, and the
	// blocks of the catalog itself on packages that a ManagedOperator uses. The first 100 of them.
	// +listType=map
	// +listMapKey=package
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=100
	// +optional
	BlockedVersions []BlockedVersion `json:"blockedVersions,omitempty"`
}

// BlockOrigin is where a block was written.
//
// +kubebuilder:validation:Enum=Spec;Catalog
type BlockOrigin string

const (
	// BlockFromSpec is a block in the OperatorCatalog's spec.
	BlockFromSpec BlockOrigin = "Spec"
	// BlockFromCatalog is a block in the published catalog.
	BlockFromCatalog BlockOrigin = "Catalog"
)

// BlockedVersion is a block in force, with the clusters that it affects.
type BlockedVersion struct {
	VersionBlock `json:",inline"`

	// Origin is where the block can be removed.
	Origin BlockOrigin `json:"origin"`
	// Expired is true if a person must review the block in spec.blocks, because its day has come.
	// +optional
	Expired bool `json:"expired,omitempty"`
	// Clusters is how many clusters run the version.
	Clusters int32 `json:"clusters"`
	// ClusterNames are the first 20 of these clusters, by name.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
	// Proposal is what the clusters that run the version can do.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Proposal string `json:"proposal,omitempty"`
}

// CatalogPackage summarizes one package of a catalog.
type CatalogPackage struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=253
	// +optional
	DefaultChannel string `json:"defaultChannel,omitempty"`
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Channels []CatalogChannel `json:"channels,omitempty"`

	// Versions are set only for a package that a ManagedOperator uses, the newest first: the versions that clusters
	// run, and the newest of the other versions.
	// +listType=map
	// +listMapKey=bundle
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Versions []CatalogVersion `json:"versions,omitempty"`
	// OmittedVersions is how many further versions there are.
	// +optional
	OmittedVersions int32 `json:"omittedVersions,omitempty"`
}

// CatalogVersion is one version of a package, and how many clusters run it.
type CatalogVersion struct {
	// Bundle is the name of the bundle, which is the name of its CSV.
	// +kubebuilder:validation:MaxLength=253
	Bundle string `json:"bundle"`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
	// Clusters is how many clusters run the version.
	Clusters int32 `json:"clusters"`
	// Absent is true if clusters run the version although the catalog does not have it.
	// +optional
	Absent bool `json:"absent,omitempty"`
	// Blocked is why the version is blocked; empty if it is not blocked.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Blocked string `json:"blocked,omitempty"`
	// Deprecated is the catalog's deprecation message for the version; empty if there is none.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Deprecated string `json:"deprecated,omitempty"`
	// EndOfSupport is the last day on which the version is supported, according to the catalog; empty if the catalog
	// does not have it.
	// +kubebuilder:validation:MaxLength=10
	// +optional
	EndOfSupport string `json:"endOfSupport,omitempty"`
	// SupportedKubernetes are the versions of Kubernetes that the version supports, according to the catalog. Absent
	// if the catalog does not have them.
	// +optional
	SupportedKubernetes *KubernetesRange `json:"supportedKubernetes,omitempty"`
	// Rollbacks describe the rollbacks from this version to previous versions.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Rollbacks []CatalogRollback `json:"rollbacks,omitempty"`
}

// CatalogRollback is the rollback of one edge of the upgrade graph.
type CatalogRollback struct {
	// From is the previous bundle, which the rollback goes to.
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// Class is in-place, needs-backup or one-way.
	// +kubebuilder:validation:MaxLength=32
	Class string `json:"class"`
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`
}

// CatalogChannel summarizes one channel of a package.
type CatalogChannel struct {
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Head is the version at the head of the channel.
	// +kubebuilder:validation:MaxLength=128
	Head string `json:"head"`
	// Versions is the number of versions in the channel.
	Versions int32 `json:"versions"`
}

// OperatorCatalogList is a list of OperatorCatalogs.
//
// +kubebuilder:object:root=true
type OperatorCatalogList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorCatalog `json:"items"`
}

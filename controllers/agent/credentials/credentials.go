// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials keeps the credentials with which an agent connects to its hub. It
// starts with the kubeconfig that `bellwether fleet join` created, renews the token in it
// long before it expires, follows changes of the hub's certificate authority, and stores
// both, so that an agent uses them after a restart. The caller chooses the store. The package
// does nothing else on the hub.
package credentials

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

// Store keeps renewed credentials next to the kubeconfig that they replace.
type Store interface {
	// Load returns the kubeconfig and the data of the last Save. renewed is
	// nil if nothing was saved.
	Load(ctx context.Context) (kubeconfig, renewed []byte, err error)
	// Save stores renewed credentials. It does not change the kubeconfig.
	Save(ctx context.Context, renewed []byte) error
}

// renewedCredentials are the credentials that an agent got after it joined. They replace the
// credentials in the kubeconfig, and are valid for that kubeconfig only: a kubeconfig that
// `fleet join` writes later is newer than all credentials renewed before.
type renewedCredentials struct {
	// Of is the SHA-256 of the kubeconfig that the credentials belong to.
	Of    string `json:"of"`
	Token string `json:"token,omitempty"`
	// Authority is the hub's bundle of certificates, in PEM. Empty: the bundle
	// of the kubeconfig is used.
	Authority []byte `json:"authority,omitempty"`
}

// Credentials are the credentials with which an agent connects to its hub. Clients made from
// Config always use the newest credentials.
type Credentials struct {
	config *rest.Config
	// renewable is true if the kubeconfig has a token. authorityFile is the file with the
	// certificates that verify the hub; empty if the kubeconfig has none.
	renewable     bool
	authorityFile string

	// inUse are the current credentials. Only a Keeper changes them.
	inUse renewedCredentials
	token atomic.Pointer[string]
}

// Load reads credentials from the store. The certificates are kept in a file below
// folder, because clients read that file again when it changes. An empty folder means the
// folder for temporary files.
func Load(ctx context.Context, store Store, folder, userAgent string) (*Credentials, error) {
	kubeconfig, stored, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("use kubeconfig: %w", err)
	}
	c := &Credentials{config: rest.AddUserAgent(config, userAgent),
		inUse: renewedCredentials{Of: hashKubeconfig(kubeconfig)}}
	var renewed renewedCredentials
	// Renewed credentials that cannot be decoded are ignored, and the kubeconfig is used.
	if json.Unmarshal(stored, &renewed) == nil && renewed.Of == c.inUse.Of {
		c.inUse = renewed
	}
	c.useToken()
	return c, c.useAuthority(folder)
}

// hashKubeconfig returns the SHA-256 of a kubeconfig in hexadecimal.
func hashKubeconfig(kubeconfig []byte) string {
	sum := sha256.Sum256(kubeconfig)
	return hex.EncodeToString(sum[:])
}

// Config returns a configuration for clients of the hub.
func (c *Credentials) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Account returns the UID of the ServiceAccount whose token is in use; empty if there is no
// token, or the token belongs to no ServiceAccount.
func (c *Credentials) Account() types.UID {
	token := c.token.Load()
	if token == nil {
		return ""
	}
	claims, err := parseToken(*token)
	if err != nil {
		return ""
	}
	return claims.accountUID()
}

// useToken moves the token from the configuration to c, which returns the newest token to
// clients. It does nothing if the kubeconfig has no token, or names a file with the token.
func (c *Credentials) useToken() {
	token := c.config.BearerToken
	if token == "" || c.config.BearerTokenFile != "" {
		return
	}
	if c.inUse.Token != "" {
		token = c.inUse.Token
	}
	c.renewable = true
	c.token.Store(&token)
	c.config.BearerToken = ""
	c.config.Wrap(transport.TokenSourceWrapTransport(c))
}

// Token implements oauth2.TokenSource. The result has no expiry, because the server decides by
// its own clock when the token expires.
func (c *Credentials) Token() (*oauth2.Token, error) {
	return &oauth2.Token{AccessToken: *c.token.Load()}, nil
}

// useAuthority moves the certificates from the configuration to a file, because client-go reloads
// files. It does nothing if the token cannot be renewed or the kubeconfig has no certificates.
func (c *Credentials) useAuthority(folder string) error {
	if !c.renewable || len(c.config.CAData) == 0 {
		return nil
	}
	if len(c.inUse.Authority) > 0 {
		c.config.CAData = c.inUse.Authority
	}
	if folder != "" {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("keep the hub's certificate authority: %w", err)
		}
	}
	dir, err := os.MkdirTemp(folder, "hub-ca-")
	if err != nil {
		return fmt.Errorf("keep the hub's certificate authority: %w", err)
	}
	c.authorityFile = filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(c.authorityFile, c.config.CAData, 0o600); err != nil {
		return fmt.Errorf("keep the hub's certificate authority: %w", err)
	}
	c.config.CAFile, c.config.CAData = c.authorityFile, nil
	return nil
}

// Close removes the file with the certificates.
func (c *Credentials) Close() {
	if c.authorityFile != "" {
		_ = os.RemoveAll(filepath.Dir(c.authorityFile))
	}
}

// claims are the parts of a ServiceAccount's token that the agent uses. The agent trusts the
// hub, so it does not verify the signature.
type claims struct {
	Subject string `json:"sub"`
	Issued  int64  `json:"iat"`
	Expires int64  `json:"exp"`
	Bound   struct {
		Account struct {
			UID types.UID `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
	// Legacy is set in tokens that never expire.
	Legacy types.UID `json:"kubernetes.io/serviceaccount/service-account.uid"`
}

// accountUID returns the UID of the token's ServiceAccount; empty if the token has none.
func (c claims) accountUID() types.UID {
	if c.Legacy != "" {
		return c.Legacy
	}
	return c.Bound.Account.UID
}

// ReadNamespace returns the namespace of a token's ServiceAccount; empty if the token
// belongs to no ServiceAccount.
func ReadNamespace(token string) string {
	c, err := parseToken(strings.TrimSpace(token))
	account, ok := strings.CutPrefix(c.Subject, "system:serviceaccount:")
	if err != nil || !ok {
		return ""
	}
	namespace, _, _ := strings.Cut(account, ":")
	return namespace
}

// lifetime returns how long the token is valid, by the clock of the hub only; zero or less
// if the token has no expiry.
func (c claims) lifetime() time.Duration { return time.Duration(c.Expires-c.Issued) * time.Second }

// parseToken decodes the claims of a JSON web token. It does not verify the signature.
func parseToken(token string) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errors.New("not a JSON web token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return c, fmt.Errorf("decode token: %w", err)
	}
	if err := json.Unmarshal(payload, &c); err != nil {
		return c, fmt.Errorf("decode token: %w", err)
	}
	return c, nil
}

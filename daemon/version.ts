/** Which release this is. */

export const version = '0.1.0'

/** The Kubernetes release whose manners our nodes have, and ours: what `kubectl get nodes` shows. */
export const nodeVersion = `v1.32.4-bramble.${version}`

/** The names of Services and pods, as controller and agents agree on them. */

/** Where the agent of a node answers pods: on every node the same link-local address, the usual one of Kubernetes' NodeLocal DNSCache. */
export const nodeDnsAddress = '169.254.20.10'

/** The default of kubeadm (`networking.dnsDomain`). */
export const defaultClusterDomain = 'cluster.local'

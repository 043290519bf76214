/** The file that lets kubectl in. */

/** The context for the controller's own machine, beside `bramble`. */
export const localContext = 'bramble-local'

export type KubeconfigServers = {
  /** As other machines reach it: `https://host:6443` */
  readonly server: string
  /** As the controller's own machine reaches it, also without a network. */
  readonly local?: {
    readonly server: string
    /** This is the current context, in place of `bramble`. */
    readonly isCurrent: boolean
  }
  /** URLs of the fleet's other controllers, `https://host:6443`; their contexts are `bramble-HOST:PORT`. */
  readonly others?: readonly string[]
}

export type KubeconfigContent = KubeconfigServers & {
  /** PEM, all three. */
  readonly ca: string
  readonly certificate?: string
  readonly key?: string
  /** The name of its entry; undefined: that of the administrator. */
  readonly user?: string
}

/**
 * A kubeconfig with everything inside: context `bramble`, and `bramble-local` where a local server is given. Keep it 0600:
 * with a key it is the key. Without certificate and key it only names the fleet and the authority to trust, as ConfigMap
 * kube-public/cluster-info does.
 */
export function kubeconfigText(content: KubeconfigContent): string {
  const { server, local, others = [], ca, certificate, key } = content
  const user = content.user === undefined ? 'kubernetes-admin' : JSON.stringify(content.user)
  const credentials =
    certificate === undefined || key === undefined
      ? []
      : [
          'users:',
          `  - name: ${user}`,
          '    user:',
          `      client-certificate-data: ${base64(certificate)}`,
          `      client-key-data: ${base64(key)}`,
        ]
  const places = [
    { name: remoteContext, server },
    ...(local === undefined ? [] : [{ name: localContext, server: local.server }]),
    ...others.map((other) => ({ name: `${remoteContext}-${new URL(other).host}`, server: other })),
  ]
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    ...places.flatMap((place) => [
      `  - name: ${quoted(place.name)}`,
      '    cluster:',
      `      server: ${JSON.stringify(place.server)}`,
      `      certificate-authority-data: ${base64(ca)}`,
    ]),
    'contexts:',
    ...places.flatMap(({ name }) => [
      `  - name: ${quoted(name)}`,
      '    context:',
      `      cluster: ${quoted(name)}`,
      ...(credentials.length === 0 ? [] : [`      user: ${user}`]),
    ]),
    `current-context: ${local?.isCurrent ? localContext : remoteContext}`,
    ...credentials,
    '',
  ].join('\n')
}

const remoteContext = 'bramble'

/** Names with a colon need it in YAML. */
function quoted(name: string): string {
  return name.includes(':') ? JSON.stringify(name) : name
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

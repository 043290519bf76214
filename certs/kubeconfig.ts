/** The file that lets kubectl in. */

export type KubeconfigContent = {
  /** `https://host:6443` */
  readonly server: string
  /** PEM, all three. */
  readonly ca: string
  readonly certificate?: string
  readonly key?: string
}

/**
 * A kubeconfig with everything inside, context `bramble`. Keep it 0600: with a key it is the key. Without certificate
 * and key it only says where the fleet is and whom to trust, as ConfigMap kube-public/cluster-info does.
 */
export function kubeconfigText({ server, ca, certificate, key }: KubeconfigContent): string {
  const user = 'kubernetes-admin'
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
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    '  - name: bramble',
    '    cluster:',
    `      server: ${JSON.stringify(server)}`,
    `      certificate-authority-data: ${base64(ca)}`,
    'contexts:',
    '  - name: bramble',
    '    context:',
    '      cluster: bramble',
    ...(credentials.length === 0 ? [] : [`      user: ${user}`]),
    'current-context: bramble',
    ...credentials,
    '',
  ].join('\n')
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** `bramble-controller token create --control-plane`: the token of another controller, and the bundle that it may read. */
import { decode } from '../../api/decode.ts'
import { type BootstrapToken, formatToken, tokenNamespace } from '../../api/node/bootstrap-token.ts'
import { SecretSchema } from '../../api/secret.ts'
import { caHash } from '../../certs/ca-hash.ts'
import type { ApiAnswer, ApiClient } from '../../daemon/api-client.ts'
import { adminSocketPath, requestSettings } from './connection/admin-socket.ts'
import { bundleSecretName, readBundle, sealBundle } from './control-plane-bundle.ts'

export type ControlPlaneTokenNeeds = {
  readonly client: ApiClient
  readonly token: BootstrapToken
  readonly dataDir: string
  /** PEM, of the fleet. */
  readonly ca: string
  /** `https://HOST:PORT` for the machine that joins. */
  readonly server: string
  readonly expectSuccess: (what: string, answer: ApiAnswer) => void
  readonly signal: AbortSignal
}

const rolesPath = `/apis/rbac.authorization.k8s.io/v1/namespaces/${tokenNamespace}`
const rbac = 'rbac.authorization.k8s.io'

/** Writes the bundle for a token that was created. Resolves with the command to run on the machine that joins. */
export async function controlPlaneCommand(needs: ControlPlaneTokenNeeds, created: ApiAnswer): Promise<string> {
  const { client, token, dataDir, ca, server, expectSuccess, signal } = needs
  const settings = await requestSettings(adminSocketPath(dataDir), signal)
  if (settings === undefined) throw new Error(`No controller runs on ${dataDir}: run the command where one does`)
  const { key, sealed } = sealBundle(await readBundle(dataDir, settings), token)
  const name = bundleSecretName(token)
  const secret = decode(SecretSchema, created.body)
  const { name: tokenName = '', uid = '' } = secret.ok ? secret.value.metadata : {}
  // They go with the token, which its cleaner deletes when it has expired.
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Secret', name: tokenName, uid }]
  const metadata = { name, namespace: tokenNamespace, ownerReferences }
  const post = async (path: string, object: object) =>
    expectSuccess('Cannot create the token', await client.post(path, object, signal))
  await post(`/api/v1/namespaces/${tokenNamespace}/secrets`, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    type: 'bramble.dev/control-plane',
    data: { bundle: sealed.toString('base64') },
  })
  await post(`${rolesPath}/roles`, {
    apiVersion: `${rbac}/v1`,
    kind: 'Role',
    metadata,
    rules: [
      { apiGroups: [''], resources: ['secrets'], resourceNames: [name], verbs: ['get'] },
      // Its use is its end: the bundle goes with the token.
      { apiGroups: [''], resources: ['secrets'], resourceNames: [tokenName], verbs: ['delete'] },
    ],
  })
  await post(`${rolesPath}/rolebindings`, {
    apiVersion: `${rbac}/v1`,
    kind: 'RoleBinding',
    metadata,
    roleRef: { apiGroup: rbac, kind: 'Role', name },
    subjects: [{ apiGroup: rbac, kind: 'User', name: `system:bootstrap:${token.id}` }],
  })
  const proof = `--ca-hash ${caHash(ca)} --certificate-key ${key}`
  return `bramble-controller join-control-plane ${server} --token ${formatToken(token)} ${proof}`
}

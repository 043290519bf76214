/** Writes the files of the proxy to the Secrets that its pods mount. */
import { isApiError } from '../../../api/api-error.ts'
import type { Secret } from '../../../api/secret.ts'
import { equalJSON } from '../../store/equal-json.ts'
import { type RewriteNeeds, rewrite } from '../../store/rewrite.ts'
import { type Packed, packCertificates } from './certificate-packing.ts'
import type { ProxyConfiguration } from './proxy-configuration.ts'
import { certificateSecrets, configurationSecret, ingressNamespace, madeLabels } from './proxy-objects.ts'

/** A Secret may have 1 MiB, and an object of etcd 1.5 MiB in base64. */
const mostOfSecret = 768 * 1024
/** A Secret is full when the largest certificate finds no room: 176 KiB. */
export const proxyLimits = { files: mostOfSecret - 64 * 1024, certificates: certificateSecrets.length * 576 * 1024 }

type Data = NonNullable<Secret['data']>

/**
 * In an order in which no node reads a name without a file, whenever its message is made: new certificates, then what names them, then
 * the removal of those that nothing names any more. What is there already is not written again.
 */
export async function saveProxyFiles(needs: RewriteNeeds, { files, certificates }: ProxyConfiguration): Promise<void> {
  const wanted = new Map([...certificates].map(([file, pem]) => [file, base64(pem)]))
  const { withOld, withoutOld } = packCertificates(wanted, await present(needs), (mostOfSecret * 4) / 3)
  const putCertificates = async (packed: Packed) => {
    for (const [index, some] of packed.entries()) await put(needs, certificateSecrets[index], Object.fromEntries(some))
  }
  await putCertificates(withOld)
  const data = [...files].map(([name, text]) => [name, base64(text)] as const)
  await put(needs, configurationSecret, Object.fromEntries(data))
  await putCertificates(withoutOld)
}

async function present({ store }: RewriteNeeds): Promise<Packed> {
  const keys = certificateSecrets.map((name) => ({ namespace: ingressNamespace, name }))
  const secrets = await Promise.all(keys.map((key) => store.get('secrets', key)))
  return secrets.map((secret) => new Map(Object.entries(secret?.data ?? {})))
}

/** An empty one is not made. */
async function put({ store, clock }: RewriteNeeds, name = '', data: Data): Promise<void> {
  const key = { namespace: ingressNamespace, name }
  if ((await store.get('secrets', key)) === undefined) {
    if (Object.keys(data).length === 0) return
    const metadata = { ...key, labels: madeLabels }
    try {
      await store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data })
      return
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error
    }
  }
  const change = (secret: Secret) => (equalJSON(secret.data ?? {}, data) ? undefined : { ...secret, data })
  await rewrite({ store, clock }, 'secrets', { key, change })
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

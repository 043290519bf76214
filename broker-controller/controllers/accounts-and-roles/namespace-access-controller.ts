/**
 * Loop: keeps in every namespace the service account `default` and the ConfigMap `kube-root-ca.crt`, with the authorities that
 * programs in pods trust (pkg/controller/serviceaccount/serviceaccounts_controller.go, certificates/rootcacertpublisher).
 */
import { certificateKey, defaultAccountName, rootCertificatesName } from '../../../api/access/service-account-names.ts'
import { isApiError } from '../../../api/api-error.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { ensureDefaultAccount } from '../../default-roles/default-account.ts'
import { informer } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'

export type NamespaceAccessNeeds = {
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly authorities: {
    /** Certificates, PEM. */
    trusted(): string
    onChange(changed: () => void): void
  }
}

const description =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.'

export function namespaceAccessController(needs: NamespaceAccessNeeds): Loop {
  return { name: 'namespace-access', run: (signal) => runNamespaceAccess(needs, signal) }
}

async function runNamespaceAccess(
  { store, clock, log, authorities }: NamespaceAccessNeeds,
  signal: AbortSignal,
): Promise<void> {
  const queue = workQueue(clock)
  const namespaces = informer({ store, clock, log }, 'namespaces', (present) => {
    if (present !== undefined) queue.add(present.metadata.name)
  })
  const accounts = informer({ store, clock, log }, 'serviceaccounts', (present, previous) => {
    if (present === undefined && previous?.metadata.name === defaultAccountName)
      queue.add(previous.metadata.namespace ?? '')
  })
  const maps = informer({ store, clock, log }, 'configmaps', (present, previous) => {
    const { name, namespace = '' } = (present ?? previous)?.metadata ?? {}
    if (name === rootCertificatesName) queue.add(namespace)
  })
  authorities.onChange(() => {
    for (const { metadata } of namespaces.all()) queue.add(metadata.name)
  })

  const reconcile = async (name: string) => {
    const namespace = await store.get('namespaces', { namespace: '', name })
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) return undefined
    await ensureDefaultAccount(store, name)
    await ensureCertificates(store, name, authorities.trusted())
    return undefined
  }
  await runLoops(
    [
      { name: 'namespaces', run: namespaces.run },
      { name: 'accounts', run: accounts.run },
      { name: 'maps', run: maps.run },
      { name: 'reconcile', run: (until) => runController({ name: 'namespace-access', reconcile }, queue, log, until) },
    ],
    signal,
    log,
  )
}

async function ensureCertificates(store: Store, namespace: string, trusted: string): Promise<void> {
  const key = { namespace, name: rootCertificatesName }
  const present = await store.get('configmaps', key)
  const data = { [certificateKey]: trusted }
  if (present === undefined) {
    const metadata = { ...key, annotations: { 'kubernetes.io/description': description } }
    await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }).catch(unlessThere)
  } else if (present.data?.[certificateKey] !== trusted || Object.keys(present.data).length > 1) {
    await store.update('configmaps', { ...present, data })
  }
}

function unlessThere(error: unknown): void {
  if (!isApiError(error, 'AlreadyExists')) throw error
}

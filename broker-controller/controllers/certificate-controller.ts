/** Loop: certificate requests of nodes are answered, signed, and cleared away when they are history. */

import type { CertificateSigningRequest } from '../../api/certificate-signing-request.ts'
import type { HardwareIdentity } from '../../api/hardware-identity.ts'
import { nodeIdentity } from '../../api/identity.ts'
import { nodeLeaseNamespace } from '../../api/lease.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { runController } from '../../daemon/controller.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import type { EventRecorder } from '../store/event-recorder.ts'
import { follow, keyFrom, keyText } from '../store/follow.ts'
import { nodeReference } from '../store/references.ts'
import { removeIfThere } from '../store/remove.ts'
import { revocationsIn, revocationsKey } from '../store/revocations.ts'
import type { Store, StoredObject } from '../store/store.ts'
import {
  answeredRequest,
  type CertificateStep,
  type CheckedRequest,
  certificateStep,
  copyWarning,
  expectedNodeName,
  hardwareOf,
  isHistory,
} from './certificate-approval.ts'
import { defaultNodeLifecycleSettings } from './node-lifecycle-settings.ts'

/** The fleet's authority, as this controller needs it. */
export interface CertificateSigner {
  /** Is `pem` a node's request by the rules of its signer? */
  check(
    pem: string,
    terms: { readonly signerName: string; readonly usages: readonly string[]; readonly expectedName?: string },
  ): CheckedRequest
  /** The certificate, PEM. */
  sign(pem: string, terms: { readonly expirationSeconds?: number; readonly notBeforeMs?: number }): string
}

export type CertificateNeeds = {
  readonly store: Store
  readonly signer: CertificateSigner
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
}
export type CertificateSettings = {
  readonly nodeMonitorGracePeriodMs: number
  /** Nodes whose certificate has ended wait for an operator's approval. */
  readonly quarantine?: boolean
}

const cleanUpPeriodMs = 3_600_000
/** A machine that was let in is a node by then, or it is not coming. */
const promiseMs = 2 * 60_000

export function certificateController(
  needs: CertificateNeeds,
  settings: CertificateSettings = defaultNodeLifecycleSettings,
): Loop {
  return { name: 'certificates', run: (signal) => runCertificates(needs, settings, signal) }
}

type StoredRequest = StoredObject<'certificatesigningrequests'>

async function runCertificates(
  { store, signer, events, clock, log }: CertificateNeeds,
  settings: CertificateSettings,
  signal: AbortSignal,
): Promise<void> {
  const startedMs = clock.monotonicMs()
  const queue = workQueue(clock)
  const requests = follow({ store, clock, log }, 'certificatesigningrequests', (present) => {
    if (present !== undefined) queue.add(keyText(present.metadata))
  })

  /** Cards flashed alike ask for one name in one moment, before the first of them is seen as a node. */
  const promised = new Map<string, { readonly hardware: HardwareIdentity; readonly untilMs: number }>()
  const promisedTo = (name: string) => {
    const nowMs = clock.monotonicMs()
    for (const [other, { untilMs }] of promised) if (untilMs <= nowMs) promised.delete(other)
    return promised.get(name)?.hardware
  }

  const reconcile = async (key: string) => {
    const csr = await store.get('certificatesigningrequests', keyFrom(key))
    if (csr === undefined) return undefined
    await act(csr, await stepFor(csr))
    return undefined
  }

  const stepFor = async (csr: StoredRequest): Promise<CertificateStep> => {
    const { request, signerName, usages = [] } = csr.spec
    const expectedName = expectedNodeName(csr)
    const checked = signer.check(pemOf(request), {
      signerName,
      usages,
      ...(expectedName !== undefined && { expectedName }),
    })
    const name = checked.ok ? checked.nodeName : ''
    const step = certificateStep(csr, checked, {
      node: checked.ok ? await store.get('nodes', { namespace: '', name }) : undefined,
      lease: checked.ok ? await store.get('leases', { namespace: nodeLeaseNamespace, name }) : undefined,
      nowMs: clock.wallMs(),
      graceMs: settings.nodeMonitorGracePeriodMs,
      promisedTo: promisedTo(name),
      sinceStartMs: clock.monotonicMs() - startedMs,
      quarantine: settings.quarantine ?? false,
      revokedBeforeMs: await revokedBeforeMs(expectedName ?? name),
    })
    const hardware = hardwareOf(csr)
    if (step.step === 'approve' && Object.keys(hardware).length > 0) {
      promised.set(name, { hardware, untilMs: clock.monotonicMs() + promiseMs })
      await tellOfCopy(name, hardware)
    }
    return step
  }

  const tellOfCopy = async (name: string, hardware: HardwareIdentity) => {
    const { items } = await store.list('nodes')
    // A card that was put into another board is that node's still.
    const others = items.filter(({ metadata }) => metadata.name !== name)
    const message = copyWarning(hardware, others)
    if (message === undefined) return
    log.warn('A machine joins with a copied card', { node: name, message })
    const object = nodeReference(name)
    await events.record({ object, type: 'Warning', reason: 'CopiedCard', message, component: 'certificate-controller' })
  }

  const revokedBeforeMs = async (nodeName: string): Promise<number | undefined> =>
    revocationsIn(await store.get('configmaps', revocationsKey)).get(nodeIdentity(nodeName).user)?.beforeMs

  const act = async (csr: StoredRequest, step: CertificateStep): Promise<void> => {
    const { name } = csr.metadata
    const now = rfc3339(clock.wallMs())
    switch (step.step) {
      case 'none':
        return
      case 'approve': {
        const message = 'Auto approving node client certificate: the machine showed a valid token or certificate.'
        log.info('Certificate request approved', { csr: name, user: csr.spec.username })
        return write(answeredRequest(csr, { type: 'Approved', reason: 'AutoApproved', message }, now))
      }
      case 'deny':
      case 'fail': {
        const { reason, message } = step
        log.warn('Certificate request refused', { csr: name, user: csr.spec.username, reason, message })
        return write(answeredRequest(csr, { type: step.step === 'deny' ? 'Denied' : 'Failed', reason, message }, now))
      }
      case 'sign': {
        const { request, expirationSeconds } = csr.spec
        const notBeforeMs = await revokedBeforeMs(step.nodeName)
        const pem = signer.sign(pemOf(request), {
          ...(expirationSeconds !== undefined && { expirationSeconds }),
          ...(notBeforeMs !== undefined && { notBeforeMs }),
        })
        log.info('Certificate signed', { csr: name })
        return write({ ...csr, status: { ...csr.status, certificate: Buffer.from(pem).toString('base64') } })
      }
    }
  }

  /** With the version it was decided on: after a conflict the change is visited, and decided, anew. */
  const write = async (csr: CertificateSigningRequest) => {
    await store.updateStatus('certificatesigningrequests', csr)
  }

  const cleanUp = async () => {
    await requests.listed
    while (!signal.aborted) {
      const history = [...requests.all()].filter((csr) => isHistory(csr, clock.wallMs()))
      for (const csr of history) await removeIfThere(store, 'certificatesigningrequests', csr)
      if (history.length > 0) log.info('Old certificate requests removed', { count: history.length })
      await clock.sleep(cleanUpPeriodMs, signal)
    }
  }

  const loops = [
    { name: 'requests', run: requests.run },
    {
      name: 'answer',
      run: (until: AbortSignal) => runController({ name: 'certificates', reconcile }, queue, log, until),
    },
    { name: 'clean-up', run: cleanUp },
  ]
  await runLoops(loops, signal, log)
}

function pemOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}

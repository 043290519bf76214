/** Loop: certificate requests of nodes are answered, signed, and cleared away when they are history. */

import { type CertificateSigningRequest, waitingCondition } from '../../../api/certificate-signing-request.ts'
import { nodeIdentity, olderThanStoreKey } from '../../../api/identity.ts'
import { nodeLeaseNamespace } from '../../../api/lease.ts'
import { type Clock, rfc3339 } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import type { Log } from '../../../daemon/log.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { CheckpointWindow } from '../../store/checkpoint-window.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { follow, keyFrom, keyText } from '../../store/follow.ts'
import { nodeReference } from '../../store/references.ts'
import { removeIfThere } from '../../store/remove.ts'
import { revocationsIn, revocationsKey, revoke } from '../../store/revocations.ts'
import type { Store, StoredObject, StoreOrigin } from '../../store/store.ts'
import { expiringMap } from '../expiring-map.ts'
import { defaultNodeLifecycleSettings } from '../node-lifecycle/node-lifecycle-settings.ts'
import {
  answeredRequest,
  type CertificateStep,
  type CheckedRequest,
  certificateStep,
  copyWarning,
  expectedNodeName,
  hardwareOf,
  isHistory,
  movedWarning,
  nameTakenWarning,
} from './certificate-approval.ts'

/** The fleet's authority, as this controller needs it. */
export interface CertificateSigner {
  /** Is `pem` a node's request by the rules of its signer? */
  check(
    pem: string,
    terms: { readonly signerName: string; readonly usages: readonly string[]; readonly expectedName?: string },
  ): CheckedRequest
  /** The certificate, PEM. */
  sign(pem: string, terms: SigningTerms): string
}

export type SigningTerms = {
  readonly expirationSeconds?: number
  readonly notBeforeMs?: number
  /** It renews a certificate that is older than the store: it counts as one, too. */
  readonly isOlder?: boolean
}

export type CertificateNeeds = {
  readonly store: Store
  readonly signer: CertificateSigner
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  /** Which store this is, and whether it accepts checkpoints: then it does not know all names that are taken. */
  readonly origin?: Pick<StoreOrigin, 'id'>
  readonly checkpoints?: Pick<CheckpointWindow, 'isOpen' | 'onClose'>
}
export type CertificateSettings = {
  readonly nodeMonitorGracePeriodMs: number
  /** Nodes whose certificate has ended wait for an operator's approval. */
  readonly quarantine?: boolean
}

const cleanUpPeriodMs = 3_600_000
/** A machine that was let in has registered by then; until then its key alone may ask for the name again. */
const promiseMs = 10 * 60_000
/** Requests for one name that is taken are reported to the operator once in so long. */
const warnEveryMs = 10 * 60_000

export function certificateController(
  needs: CertificateNeeds,
  settings: CertificateSettings = defaultNodeLifecycleSettings,
): Loop {
  return { name: 'certificates', run: (signal) => runCertificates(needs, settings, signal) }
}

type StoredRequest = StoredObject<'certificatesigningrequests'>

/** `revokedMs`: up to when certificates of the name were revoked when the promise was made. */
type Promised = { readonly keyHash: string; readonly revokedMs: number | undefined }

async function runCertificates(
  { store, signer, events, clock, log, origin, checkpoints }: CertificateNeeds,
  settings: CertificateSettings,
  signal: AbortSignal,
): Promise<void> {
  const startedMs = clock.monotonicMs()
  /** For lines that a requester can cause. A token may let in a rack of machines at one time. */
  const limited = limitLog(log, clock, { linesPerKey: 100, linesInTotal: 300, longestText: 1000 })
  const queue = workQueue(clock)
  const requests = follow({ store, clock, log }, 'certificatesigningrequests', (present) => {
    if (present !== undefined) queue.add(keyText(present.metadata))
  })
  /** The name of a deleted Node is free, also for another key than the last one; a request that waits for it is decided. */
  const nodes = follow({ store, clock, log }, 'nodes', (present, previous) => {
    if (present !== undefined || previous === undefined) return
    promises.delete(previous.metadata.name)
    decideWaiting()
  })
  const decideWaiting = () => {
    for (const csr of requests.all()) if (isWaiting(csr)) queue.add(keyText(csr.metadata))
  }
  checkpoints?.onClose(decideWaiting)
  /** Void once certificates of the name are revoked: a revoked key must not get in again by its promise. */
  const promises = expiringMap<Promised>(clock, promiseMs)
  const warned = expiringMap<true>(clock, warnEveryMs)

  const reconcile = async (key: string) => {
    const csr = await store.get('certificatesigningrequests', keyFrom(key))
    if (csr === undefined) return undefined
    const step = await stepFor(csr)
    await act(csr, step)
    return step.step === 'wait' && step.againMs !== undefined ? { requeueAfterMs: step.againMs } : undefined
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
    const node = checked.ok ? await store.get('nodes', { namespace: '', name }) : undefined
    const revokedMs = await revokedBeforeMs(expectedName ?? name)
    const promised = promises.get(name)
    const step = certificateStep(csr, checked, {
      node,
      lease: checked.ok ? await store.get('leases', { namespace: nodeLeaseNamespace, name }) : undefined,
      nowMs: clock.wallMs(),
      graceMs: settings.nodeMonitorGracePeriodMs,
      promisedTo: promised?.revokedMs === revokedMs ? promised?.keyHash : undefined,
      sinceStartMs: clock.monotonicMs() - startedMs,
      quarantine: settings.quarantine ?? false,
      hasPods: checked.ok && (await store.list('pods')).items.some(({ spec }) => spec.nodeName === name),
      acceptsCheckpoints: checkpoints?.isOpen() ?? false,
      revokedBeforeMs: revokedMs,
    })
    if (step.step === 'approve' && checked.ok) {
      promises.set(name, { keyHash: checked.keyHash, revokedMs })
      await warn(name, 'CopiedCard', await copyProblem(name, csr))
      await warn(name, 'MachineChanged', movedWarning(csr, node))
    }
    if ('isNameTaken' in step && step.isNameTaken) {
      await warn(name, 'NodeNameInUse', nameTakenWarning(name, csr.metadata.name, node, csr))
    }
    return step
  }

  const copyProblem = async (name: string, csr: StoredRequest): Promise<string | undefined> => {
    const hardware = hardwareOf(csr)
    if (hardware.machineID === undefined) return undefined
    const { items } = await store.list('nodes')
    // A card that was put into another board is that node's still.
    return copyWarning(
      hardware,
      items.filter(({ metadata }) => metadata.name !== name),
    )
  }

  /** For the operator only: it names machines. */
  const warn = async (name: string, reason: string, message: string | undefined) => {
    const key = `${reason}/${name}`
    if (message === undefined || warned.get(key)) return
    warned.set(key, true)
    limited.warn(reason, 'Certificate request needs attention', { node: name, reason, message })
    await events.record({
      object: nodeReference(name),
      type: 'Warning',
      reason,
      message,
      component: 'certificate-controller',
    })
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
        limited.info(csr.spec.username ?? '', 'Certificate request approved', { csr: name, user: csr.spec.username })
        return write(answeredRequest(csr, { type: 'Approved', reason: 'AutoApproved', message }, now))
      }
      case 'deny':
      case 'fail': {
        const { reason, message } = step
        limited.warn(csr.spec.username ?? '', 'Certificate request refused', {
          csr: name,
          user: csr.spec.username,
          reason,
          message,
        })
        return write(answeredRequest(csr, { type: step.step === 'deny' ? 'Denied' : 'Failed', reason, message }, now))
      }
      case 'wait': {
        const { reason, message } = step
        const known = csr.status?.conditions?.find(({ type }) => type === waitingCondition)
        if (known?.reason === reason && known.message === message) return
        limited.info(csr.spec.username ?? '', 'Certificate request waits for an operator', {
          csr: name,
          user: csr.spec.username,
          reason,
        })
        return write(answeredRequest(csr, { type: waitingCondition, reason, message }, now))
      }
      case 'sign': {
        const { request, expirationSeconds } = csr.spec
        if (step.replaces) {
          log.warn('Node replaced by another machine: its earlier certificates are revoked', { node: step.nodeName })
          await revoke({ store, clock }, nodeIdentity(step.nodeName).user, 'Replaced')
        }
        const notBeforeMs = await revokedBeforeMs(step.nodeName)
        const pem = signer.sign(pemOf(request), {
          ...(expirationSeconds !== undefined && { expirationSeconds }),
          ...(notBeforeMs !== undefined && { notBeforeMs }),
          isOlder: origin !== undefined && csr.spec.extra?.[olderThanStoreKey]?.includes(origin.id) === true,
        })
        limited.info(csr.spec.username ?? '', 'Certificate signed', { csr: name })
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
    { name: 'nodes', run: nodes.run },
    {
      name: 'answer',
      run: (until: AbortSignal) => runController({ name: 'certificates', reconcile }, queue, log, until),
    },
    { name: 'clean-up', run: cleanUp },
  ]
  await runLoops(loops, signal, log).finally(limited.close)
}

function isWaiting({ status }: CertificateSigningRequest): boolean {
  return status?.conditions?.every(({ type }) => type === waitingCondition) === true
}

function pemOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}

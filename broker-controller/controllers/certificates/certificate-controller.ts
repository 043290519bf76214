/** Loop: answers and signs certificate requests, and removes old ones. */
import { peopleSigner } from '../../../api/certificate-signing-request.ts'
import { nodeLeaseNamespace } from '../../../api/lease.ts'
import { tokenIdOf, tokenNamespace, tokenSecretName } from '../../../api/node/bootstrap-token.ts'
import type { NodeCSRAnswer, NodeCSRTerms } from '../../../certs/csr-check.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { runController } from '../../../daemon/controller.ts'
import { expiringMap } from '../../../daemon/limits/expiring-map.ts'
import type { Log } from '../../../daemon/log.ts'
import { limitLog } from '../../../daemon/log-limit.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import type { CheckpointWindow } from '../../store/checkpoints/checkpoint-window.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import { type Informer, informer, keyFrom, keyText } from '../../store/informer.ts'
import { removeObject } from '../../store/object-removal.ts'
import type { Store, StoredObject, StoreOrigin } from '../../store/store.ts'
import { defaultNodeLifecycleSettings } from '../node-lifecycle/node-lifecycle-settings.ts'
import { isReady } from '../node-lifecycle/zones.ts'
import {
  type CertificateStep,
  certificateStep,
  expectedNodeName,
  isHistory,
  movedWarning,
  nameTakenWarning,
} from './certificate-approval.ts'
import { answerClientRequest, type ClientCertificateSigner } from './client-certificates.ts'
import {
  type CertificateSigner,
  type IssuedListener,
  pemOf,
  requestAnswers,
  revokedBeforeMs,
} from './request-answers.ts'
import { requestWarnings } from './request-warnings.ts'
import { isExpiredToken } from './token-cleaner.ts'

export type CertificateNeeds = {
  readonly store: Store
  readonly signer: CertificateSigner
  readonly clientSigner: ClientCertificateSigner
  /** Whether a node may have the request signed. */
  readonly checkRequest: (pem: string, terms: NodeCSRTerms) => NodeCSRAnswer
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  /** Which store this is, and whether it accepts checkpoints: then it may lack names that are taken. */
  readonly origin?: Pick<StoreOrigin, 'id'>
  readonly checkpoints?: Pick<CheckpointWindow, 'isOpen' | 'onClose'>
  /** Called with each certificate of a node before the node can read it. */
  readonly issued?: IssuedListener | undefined
}
export type CertificateSettings = {
  readonly nodeMonitorGracePeriodMs: number
  /** Nodes whose certificate has ended wait for an operator's approval. */
  readonly quarantine?: boolean
}

const cleanUpPeriodMs = 3_600_000
/** An admitted machine has registered by then. Until then only its key may request the name again. */
const promiseMs = 10 * 60_000

export function certificateController(
  needs: CertificateNeeds,
  settings: CertificateSettings = defaultNodeLifecycleSettings,
): Loop {
  return { name: 'certificates', run: (signal) => runCertificates(needs, settings, signal) }
}

/** `revokedMs`: up to when certificates of the name were revoked when the promise was made. */
type Promised = { readonly keyHash: string; readonly revokedMs: number | undefined }

async function runCertificates(
  needs: CertificateNeeds,
  settings: CertificateSettings,
  signal: AbortSignal,
): Promise<void> {
  const { store, clientSigner, checkRequest, events, clock, log, checkpoints } = needs
  const startedMs = clock.monotonicMs()
  /** For lines that a requester can cause. A rack of machines may join with one token at one time. */
  const limited = limitLog(log, clock, { linesPerKey: 100, linesInTotal: 300, longestText: 1000 })
  const queue = workQueue(clock)
  /** The names that requests wait for, by the key of the request: only of requests that the informer has, which ends them. */
  const waiting = new Map<string, string>()
  const requests = informer({ store, clock, log }, 'certificatesigningrequests', (present, previous) => {
    if (present !== undefined) queue.add(keyText(present.metadata))
    else if (previous !== undefined) waiting.delete(keyText(previous.metadata))
  })
  /**
   * The name of a deleted Node is free, also for another key than the last one. That of a node which is Ready now is taken: a card copied
   * before its first boot asks while the other machine starts, and takes a name of its own when it is refused.
   */
  const nodes = informer({ store, clock, log }, 'nodes', (present, previous) => {
    if (present === undefined && previous !== undefined) promises.delete(previous.metadata.name)
    const isDecided = present === undefined || (isReady(present) && !(previous && isReady(previous)))
    const nodeName = (present ?? previous)?.metadata.name
    if (isDecided) decide((name) => name === nodeName)
  })
  const decide = (isMeant: (nodeName: string) => boolean) => {
    for (const [key, nodeName] of waiting) if (isMeant(nodeName)) queue.add(key)
  }
  checkpoints?.onClose(() => decide(() => true))
  /** Void once certificates of the name are revoked: a revoked key must not get in again by its promise. */
  const promises = expiringMap<Promised>(clock, promiseMs)
  const warnings = requestWarnings({ store, events, clock, log: limited })
  const answers = requestAnswers({ ...needs, limited })

  const reconcile = async (key: string) => {
    const csr = await store.get('certificatesigningrequests', keyFrom(key))
    if (csr === undefined) return undefined
    if (csr.spec.signerName === peopleSigner) {
      await answerClientRequest(csr, { store, clientSigner, clock, limited })
      return undefined
    }
    const { request, signerName, usages = [] } = csr.spec
    const expectedName = expectedNodeName(csr)
    const checked = checkRequest(pemOf(request), {
      signerName,
      usages,
      ...(expectedName !== undefined && { expectedName }),
    })
    // Before the node is read: what it becomes afterwards decides again. The request may have been deleted since it was read.
    if (checked.ok && requests.get(keyFrom(key)) !== undefined) waiting.set(key, checked.nodeName)
    const step = await stepFor(csr, checked, expectedName)
    await answers.act(csr, step, checked)
    if (step.step !== 'wait') waiting.delete(key)
    return step.step === 'wait' && step.againMs !== undefined ? { requeueAfterMs: step.againMs } : undefined
  }

  const stepFor = async (
    csr: StoredObject<'certificatesigningrequests'>,
    checked: NodeCSRAnswer,
    expectedName: string | undefined,
  ): Promise<CertificateStep> => {
    const name = checked.ok ? checked.nodeName : ''
    const node = checked.ok ? await store.get('nodes', { namespace: '', name }) : undefined
    const revokedMs = await revokedBeforeMs(store, expectedName ?? name)
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
      tokenEnded: await hasTokenEnded(csr, needs),
      revokedBeforeMs: revokedMs,
    })
    if (step.step === 'approve' && checked.ok) promises.set(name, { keyHash: checked.keyHash, revokedMs })
    await warnOf(warnings, step, { csr, name, node })
    return step
  }

  const answer = (until: AbortSignal) => runController({ name: 'certificates', reconcile }, queue, log, until)
  const loops = [
    { name: 'requests', run: requests.run },
    { name: 'nodes', run: nodes.run },
    { name: 'answer', run: answer },
    { name: 'clean-up', run: (until: AbortSignal) => cleanUp(requests, needs, until) },
  ]
  await runLoops(loops, signal, log).finally(limited.close)
}

/** Whether the token of a waiting request has ended. False for a request that was not made with a token. */
async function hasTokenEnded(
  { spec: { username = '' } }: StoredObject<'certificatesigningrequests'>,
  { store, clock }: Pick<CertificateNeeds, 'store' | 'clock'>,
): Promise<boolean> {
  const id = tokenIdOf(username)
  if (id === undefined) return false
  const secret = await store.get('secrets', { namespace: tokenNamespace, name: tokenSecretName(id) })
  return secret === undefined || isExpiredToken(secret, clock.wallMs())
}

async function cleanUp(
  requests: Informer<'certificatesigningrequests'>,
  needs: CertificateNeeds,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = needs
  await requests.listed
  while (!signal.aborted) {
    await removeHistory(requests.all(), needs).catch((error: unknown) =>
      log.warn('Old certificate requests not removed', { retryInMs: cleanUpPeriodMs, error }),
    )
    await clock.sleep(cleanUpPeriodMs, signal)
  }
}

async function removeHistory(
  present: Iterable<StoredObject<'certificatesigningrequests'>>,
  { store, clock, log }: Pick<CertificateNeeds, 'store' | 'clock' | 'log'>,
): Promise<void> {
  const isStillWanted = (csr: StoredObject<'certificatesigningrequests'>) => isHistory(csr, clock.wallMs())
  const history = [...present].filter(isStillWanted)
  for (const csr of history) await removeObject({ store, clock }, 'certificatesigningrequests', csr, { isStillWanted })
  if (history.length > 0) log.info('Old certificate requests removed', { count: history.length })
}

type Warned = {
  readonly csr: StoredObject<'certificatesigningrequests'>
  readonly name: string
  readonly node: StoredObject<'nodes'> | undefined
}

async function warnOf(
  warnings: ReturnType<typeof requestWarnings>,
  step: CertificateStep,
  { csr, name, node }: Warned,
): Promise<void> {
  // Only a request that could be read is approved.
  if (step.step === 'approve') {
    await warnings.warnOfCopy(name, csr)
    await warnings.warn(name, 'MachineChanged', movedWarning(csr, node))
  }
  if ('isNameTaken' in step && step.isNameTaken) {
    await warnings.warn(name, 'NodeNameInUse', nameTakenWarning(name, csr.metadata.name, node, csr))
  }
}

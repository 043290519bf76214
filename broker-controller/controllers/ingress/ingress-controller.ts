/**
 * Loop: Ingresses of the class `bramble`, served by a HAProxy on each node. It makes the proxy (a DaemonSet), gives it its files (Secrets
 * that the pods mount), and writes the addresses of ready proxies to the Ingresses. The proxy reads its files again by itself.
 */
import { runController } from '../../../daemon/controller.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { type WorkQueue, workQueue } from '../../../daemon/work-queue.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import type { StoredObject } from '../../store/store.ts'
import { type CheckedCertificate, checkCertificate } from './certificate-check.ts'
import { shownAddresses, writeAddresses } from './ingress-addresses.ts'
import { namedSecrets } from './ingress-certificates.ts'
import { type IngressProblem, oldestFirst } from './ingress-problem.ts'
import { ingressReports } from './ingress-reports.ts'
import type { IngressSettings } from './ingress-settings.ts'
import { type IngressChange, type IngressSources, ingressSources } from './ingress-sources.ts'
import { type ProxyConfiguration, proxyConfiguration } from './proxy-configuration.ts'
import { ensureProxy, type ProxyNeeds, removeProxy } from './proxy-reconcile.ts'
import { proxyLimits, saveProxyFiles } from './proxy-secrets.ts'

export type IngressNeeds = ProxyNeeds & { readonly events: EventRecorder; readonly log: Log }

/** Changes within this time are one new configuration: each one starts a process of the proxy on every node. */
const debounceMs = 500
/** What somebody changes on the objects of the proxy is put right within this time. */
const checkMs = 30_000

/** The settings of the configuration, and whether pods of the fleet have addresses of both families. */
type UsedSettings = IngressSettings & { readonly ipv6: boolean }

/** `settings` undefined: what an earlier controller made is removed. `ipv6`: pods of the fleet have addresses of both families. */
export function ingressController(needs: IngressNeeds, settings: IngressSettings | undefined, ipv6 = false): Loop {
  const run = (signal: AbortSignal) =>
    settings === undefined ? removing(needs, signal) : serving(needs, { ...settings, ipv6 }, signal)
  return { name: 'ingress', run }
}

async function removing(needs: IngressNeeds, signal: AbortSignal): Promise<void> {
  const queue = workQueue(needs.clock)
  const reconcile = async () => {
    await removeProxy(needs)
    return undefined
  }
  queue.add('proxy')
  await runController({ name: 'ingress', reconcile }, queue, needs.log, signal)
}

async function serving(needs: IngressNeeds, settings: UsedSettings, signal: AbortSignal): Promise<void> {
  const { clock, log } = needs
  const queue = workQueue(clock)
  const sources = ingressSources({ store: needs.store, clock, log, ipv6: settings.ipv6 }, (change) =>
    enqueue(queue, change),
  )
  const visits = ingressVisits(needs, settings, sources)
  const reconcile = async (key: string) => {
    sources.catchUp()
    if (key === 'proxy') {
      await ensureProxy(needs, settings)
      await visits.keepFiles()
      return { requeueAfterMs: checkMs }
    }
    if (key === 'configuration') await visits.configure()
    else if (key === 'addresses') await writeAddresses(needs, sources.ours(), sources.addresses(), sources.isOurs)
    else await visits.leave(key.slice(leftPrefix.length))
    return undefined
  }
  const work = async (until: AbortSignal) => {
    await sources.listed
    for (const key of ['proxy', 'configuration', 'addresses']) queue.add(key)
    if (!until.aborted) await runController({ name: 'ingress', reconcile }, queue, log, until)
  }
  await runLoops([...sources.loops, { name: 'ingress-work', run: work }], signal, log)
}

const leftPrefix = 'left '

function enqueue(queue: WorkQueue, change: IngressChange): void {
  if (typeof change === 'object') queue.add(`${leftPrefix}${change.left}`)
  else if (change === 'proxy') queue.add(change)
  else queue.addAfter(change, debounceMs)
}

function ingressVisits(needs: IngressNeeds, settings: UsedSettings, sources: IngressSources) {
  const reports = ingressReports(needs)
  const certificates = checkedCertificates(sources)
  let latest: ProxyConfiguration | undefined

  return {
    async configure(): Promise<void> {
      const secrets = new Set(namedSecrets(sources.ours()))
      if (settings.defaultCertificate !== undefined) secrets.add(settings.defaultCertificate)
      const services = new Set<string>()
      // Before the first wait: a change from then on is another visit.
      sources.refer({ services, secrets })
      const checked = await certificates.of(secrets)
      const builder = proxyConfiguration({
        service(key) {
          services.add(key)
          return sources.service(key)
        },
        certificate: (key) => checked.get(key),
        settings,
        limits: proxyLimits,
      })
      const problems = new Map<StoredObject<'ingresses'>, readonly IngressProblem[]>()
      for (const ingress of [...sources.ours()].sort(oldestFirst)) {
        const found = builder.add(ingress)
        if (found.length > 0) problems.set(ingress, found)
        await yieldTurn()
      }
      latest = builder.finish()
      await yieldTurn()
      await saveProxyFiles(needs, latest)
      await reports.report(problems)
    },
    /** Somebody may have changed them. */
    async keepFiles(): Promise<void> {
      if (latest !== undefined) await saveProxyFiles(needs, latest)
    },
    /** Removes our addresses from an Ingress that is no longer ours, unless its new controller wrote others. */
    async leave(key: string): Promise<void> {
      const ingress = sources.ingress(key)
      if (ingress === undefined || sources.isOurs(ingress)) return
      const own = sources.nodeAddresses()
      if (shownAddresses(ingress).every((address) => own.has(address))) {
        await writeAddresses(needs, [ingress], [], (one) => !sources.isOurs(one))
      }
    },
  }
}

/** A check of a certificate takes 1 to 3 ms: it is done once for each version of its Secret. */
function checkedCertificates(sources: IngressSources) {
  let known = new Map<string, { readonly of: object; readonly checked: CheckedCertificate }>()
  return {
    /** By `namespace/name`, of those Secrets that exist. */
    async of(keys: ReadonlySet<string>): Promise<ReadonlyMap<string, CheckedCertificate>> {
      const next: typeof known = new Map()
      for (const key of keys) {
        const secret = sources.secret(key)
        if (secret === undefined) continue
        const before = known.get(key)
        next.set(key, before?.of === secret ? before : { of: secret, checked: checkCertificate(secret) })
        await yieldTurn()
      }
      known = next
      return new Map([...known].map(([key, { checked }]) => [key, checked]))
    },
  }
}

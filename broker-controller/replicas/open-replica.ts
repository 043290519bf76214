/** This controller as one of several: whether it leads, how it reaches the one that does, and how that one recognizes it. */
import { X509Certificate } from 'node:crypto'
import { ApiError } from '../../api/api-error.ts'
import { issueController } from '../../certs/issue.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { MetricsRegistry } from '../../daemon/metrics-registry.ts'
import { version } from '../../daemon/process/version.ts'
import type { Replica } from '../apiserver/forwarding/replica.ts'
import type { ReadinessCheck } from '../apiserver/system-paths.ts'
import type { ServerLists } from '../assembly/bootstrap-objects.ts'
import type { OwnCertificates } from '../own-certificates/own-certificates.ts'
import type { ControllerAddress, ControllerRegistry } from '../store/controllers.ts'
import type { Election, Freshness } from '../store/election/election.ts'
import { runningControllers } from './running-controllers.ts'

export type ReplicaNeeds = {
  readonly election?: Election | undefined
  readonly freshness?: Freshness | undefined
  readonly controllers?: ControllerRegistry | undefined
  readonly own: Pick<OwnCertificates, 'authority' | 'onChange'>
  /** Names in the server certificate. */
  readonly hosts: readonly string[]
  readonly registry: MetricsRegistry
  readonly clock: Clock
  readonly log: Log
}

export type Addresses = Pick<ControllerAddress, 'apiServer' | 'mqttServer'>

export interface OpenReplica extends Replica {
  /** `leading` or `standby`, so that /readyz?verbose and /readyz/leading show which. */
  readonly readiness: ReadinessCheck
  readonly election: Election
  readonly controllers: ControllerRegistry
  /** Writes how this controller is reached. Rejects where the store cannot be reached. */
  register(addresses: Addresses): Promise<void>
  /** Addresses of all controllers, those of this one first. */
  servers(): ServerLists
  /** The hosts of the other controllers that run and whose API has this port. */
  runningWith(port: number): Promise<readonly string[]>
  /** Sets whether the loops of this controller run. */
  lead(isServing: boolean): void
}

/** Another controller that starts is asked for at most this often: a stranger must not make this one ask etcd all the time. */
const refreshMs = 1_000

/** undefined: this is the only controller. */
export function openReplica(needs: ReplicaNeeds): OpenReplica | undefined {
  const { election, freshness, controllers, own, clock, log } = needs
  if (election === undefined || freshness === undefined || controllers === undefined) return undefined
  let isServing = false
  let addresses: Addresses | undefined
  let credentials = issued(needs)
  let refreshedMs = Number.NEGATIVE_INFINITY

  const isLeading = () => isServing && election.isLeading()
  const leader = () => {
    const server = election.leader()?.server
    return server === addresses?.apiServer ? undefined : server
  }
  const isOwn = ({ apiServer }: ControllerAddress) => apiServer === addresses?.apiServer
  const isRegistered = (fingerprint: string) =>
    controllers.all().some(({ proxyCertificate }) => proxyCertificate === fingerprint)
  const register = async (wanted: Addresses, shown = credentials) => {
    addresses = wanted
    const proxyCertificate = shown === undefined ? '' : fingerprintOf(shown.certificate)
    await controllers.register({ ...wanted, hosts: needs.hosts, proxyCertificate, version })
  }
  own.onChange(async () => {
    const next = issued(needs)
    const written = addresses && register(addresses, next)
    await written?.catch((error: unknown) => log.warn('Addresses of this controller not written', { error }))
    // Shown from now on only: the leader has to find it.
    credentials = next
  })
  addMetrics(needs.registry, isLeading, controllers)
  return {
    election,
    controllers,
    freshness,
    isLeading,
    leader,
    register,
    servers() {
      const all = [...controllers.all()].sort((a, b) => Number(isOwn(b)) - Number(isOwn(a)))
      return {
        apiServers: all.map(({ apiServer }) => apiServer),
        mqttServers: all.flatMap(({ mqttServer }) => (mqttServer === '' ? [] : [mqttServer])),
      }
    },
    async runningWith(port) {
      const others = controllers.all().filter((one) => !isOwn(one) && portOf(one) === port)
      const running = await runningControllers(others.map(({ apiServer }) => apiServer))
      return running.map((server) => new URL(server).hostname.replace(/^\[(.*)\]$/, '$1'))
    },
    lead(next) {
      isServing = next
    },
    async isController(fingerprint) {
      if (isRegistered(fingerprint)) return true
      if (clock.monotonicMs() - refreshedMs < refreshMs) return false
      refreshedMs = clock.monotonicMs()
      await controllers.refresh().catch((error: unknown) => log.debug('Cannot read the controllers', { error }))
      return isRegistered(fingerprint)
    },
    credentials() {
      if (credentials !== undefined) return { ca: own.authority().trusted, ...credentials }
      throw new ApiError('ServiceUnavailable', 'This controller has no certificate: its clock is wrong')
    },
    readiness: {
      get name() {
        return isLeading() ? 'leading' : 'standby'
      },
      async check() {
        if (!isLeading() && leader() === undefined) throw new Error('no controller leads')
      },
    },
  }
}

/** undefined: the clock is wrong. It is issued when the other certificates are. */
function issued({ own, clock, log }: ReplicaNeeds) {
  try {
    return issueController(own.authority(), { nowMs: clock.wallMs() })
  } catch (error) {
    log.warn('No certificate for requests to the controller that leads', { error })
    return undefined
  }
}

function portOf({ apiServer }: ControllerAddress): number {
  return Number(new URL(apiServer).port || 443)
}

function fingerprintOf(certificate: string): string {
  return new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase()
}

/** The first name is Kubernetes' (component-base, metrics/prometheus/clientgo/leaderelection). */
function addMetrics(registry: MetricsRegistry, isLeading: () => boolean, controllers: ControllerRegistry): void {
  registry.add(() => [
    {
      name: 'leader_election_master_status',
      help: 'Whether this controller leads: 1, or stands by: 0.',
      type: 'gauge',
      samples: [{ labels: { name: 'bramble-controller' }, value: isLeading() ? 1 : 0 }],
    },
    {
      name: 'bramble_controllers',
      help: 'Controllers that ran within the last day.',
      type: 'gauge',
      samples: [{ labels: {}, value: controllers.all().length }],
    },
  ])
}

/** Loop: answers at the health check ports of Services, on each node. */
import { alarm } from '../../../daemon/alarm.ts'
import type { Reader } from '../../../daemon/cell.ts'
import { type Clock, longestTimerMs } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { type HealthAnswer, healthAnswer, serviceHealths } from './health-checks.ts'
import type { ServiceRules } from './service-manager.ts'

/** HTTP servers on all addresses of the node. */
export interface HealthServers {
  /** Resolves when requests are answered. Rejects where the port cannot be used. */
  open(port: number, answer: () => HealthAnswer): Promise<void>
  /** Resolves when the port is free. */
  close(port: number): Promise<void>
}

export type HealthCheckManagerNeeds = {
  readonly nodeName: string
  readonly servers: HealthServers
  readonly reads: {
    readonly serviceRules: Reader<ServiceRules | undefined>
    readonly ruleProblem: Reader<string | undefined>
  }
  readonly clock: Clock
  readonly log: Log
}

/** A port that another program has may become free. */
const retryMs = 60_000

export function healthCheckManager({ nodeName, servers, reads, clock, log }: HealthCheckManagerNeeds): Loop {
  const changed = alarm(clock)
  const open = new Set<number>()
  const refused = new Set<number>()

  let counted:
    | { readonly rules: ServiceRules | undefined; readonly healths: ReturnType<typeof serviceHealths> }
    | undefined

  /** Counted once for the present rules: anyone who reaches the node may ask as often as they like. */
  const healths = () => {
    const rules = reads.serviceRules.get()
    if (counted === undefined || counted.rules !== rules) {
      counted = { rules, healths: serviceHealths(rules?.services ?? new Map(), nodeName) }
    }
    return counted.healths
  }

  /** As of the request. A port that was taken from its Service is closed soon; until then no client is to come here. */
  const answerAt = (port: number): HealthAnswer => {
    const health = healths().get(port) ?? { namespace: '', name: '', localEndpoints: 0 }
    return healthAnswer(health, reads.ruleProblem.get() === undefined)
  }

  const openPort = async (port: number, service: string) => {
    try {
      await servers.open(port, () => answerAt(port))
      open.add(port)
      refused.delete(port)
    } catch (error) {
      if (!refused.has(port)) log.warn('Cannot answer health checks of a Service', { service, port, error })
      refused.add(port)
    }
  }

  const sync = async () => {
    const wanted = healths()
    for (const port of [...open]) {
      if (wanted.has(port)) continue
      open.delete(port)
      await servers.close(port)
    }
    for (const port of refused) if (!wanted.has(port)) refused.delete(port)
    for (const [port, { namespace, name }] of wanted) if (!open.has(port)) await openPort(port, `${namespace}/${name}`)
  }

  return {
    name: 'service-health',
    async run(signal) {
      const stop = reads.serviceRules.onChange(changed.ring)
      try {
        while (!signal.aborted) {
          await sync()
          await changed.sleep(refused.size > 0 ? retryMs : longestTimerMs, signal)
        }
      } finally {
        stop()
        for (const port of open) await servers.close(port)
      }
    },
  }
}

/** Loop: observe → decide what the node is short of. */
import type { PressureType } from '../../api/node.ts'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Observations, SignalSource } from './observations.ts'
import { type LastMet, observePressure } from './pressure.ts'
import { pressureOf, type Threshold, thresholdsMet } from './thresholds.ts'

export type EvictionNeeds = {
  readonly signals: SignalSource
  readonly clock: Clock
  readonly log: Log
  /** The node came under a pressure, or was relieved of one; also once after the first look. */
  readonly changed: () => void
}

export type EvictionSettings = {
  readonly thresholds: readonly Threshold[]
  readonly transitionMs: number
}

export interface EvictionManager {
  /** Undefined until the machine was looked at for the first time. */
  pressures(): readonly PressureType[] | undefined
  run(signal: AbortSignal): Promise<void>
}

const periodMs = 10_000 // as the kubelet

export function evictionManager(needs: EvictionNeeds, { thresholds, transitionMs }: EvictionSettings): EvictionManager {
  const { signals, clock, log, changed } = needs
  let lastMet: LastMet | undefined
  let unread = ''

  const pass = async () => {
    const observations = await signals.observe()
    tellUnread(observations)
    const met = thresholdsMet(thresholds, observations.observed)
    const pressures = met.map(({ signal }) => pressureOf(signal))
    const before = lastMet
    lastMet = observePressure(before ?? new Map(), pressures, clock.monotonicMs(), transitionMs)
    tellPressures(before, lastMet, observations)
    if (before === undefined || [...before.keys()].join() !== [...lastMet.keys()].join()) changed()
  }

  const tellUnread = (observations: Observations) => {
    const now = observations.unread.map(({ signal, because }) => `${signal}: ${because}`).join('; ')
    if (now !== unread && now !== '') log.warn('Some of the machine cannot be read', { unread: observations.unread })
    if (now !== unread && now === '') log.info('All of the machine can be read again')
    unread = now
  }

  const tellPressures = (before: LastMet | undefined, after: LastMet, { observed }: Observations) => {
    for (const type of after.keys()) {
      if (before?.has(type)) continue
      const facts = observed.filter(({ signal }) => pressureOf(signal) === type)
      log.warn('Node is under pressure', { pressure: type, observed: facts })
    }
    for (const type of before?.keys() ?? []) {
      if (!after.has(type)) log.info('Pressure is gone', { pressure: type })
    }
  }

  return {
    pressures: () => (lastMet === undefined ? undefined : [...lastMet.keys()]),
    async run(signal) {
      while (!signal.aborted) {
        await pass()
        await clock.sleep(periodMs, signal)
      }
    },
  }
}

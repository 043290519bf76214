/** Checks the signal strength of the Wi-Fi link. */
import { type ConditionCheck, fine, type HealthFinding, minutes, seconds, wrong } from './condition-check.ts'

/** `signalDbm`: 0 is the strongest signal, about -90 the weakest usable one. */
export type RadioLink = { readonly name: string; readonly signalDbm: number }

const weakDbm = -80
/** The signal must rise this far above the limit before it counts as good again. */
const hysteresisDb = 5

export function weakWifi(links: readonly RadioLink[] | undefined, wasWeak: boolean): HealthFinding | undefined {
  if (links === undefined || links.length === 0) return undefined
  const weak = links.filter(({ signalDbm }) => signalDbm < (wasWeak ? weakDbm + hysteresisDb : weakDbm))
  if (weak.length === 0) return fine('WifiSignalFine', 'The Wi-Fi signal is strong enough')
  const names = weak.map(({ name }) => name).join(', ')
  return wrong(
    'WifiSignalWeak',
    `The Wi-Fi signal of ${names} is below ${weakDbm} dBm`,
    'Move the machine or the access point, or use a cable',
  )
}

export const wifiCheck: ConditionCheck<{ radio(): readonly RadioLink[] }> = {
  type: 'WeakWifi',
  name: 'wifi',
  unknown: 'No Wi-Fi link',
  periodMs: 10 * seconds,
  riseMs: minutes,
  holdMs: 2 * minutes,
  look: (source, { wasWrong }) => weakWifi(source.radio(), wasWrong),
}

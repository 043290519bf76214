/** Loads the MQTT client with the first connection: a controller without one has no memory for it. */
import type { HouseholdLink, HouseholdLinkSettings } from './household-link.ts'

/** As `openHouseholdLink`. */
export async function openHousehold(settings: HouseholdLinkSettings, signal: AbortSignal): Promise<HouseholdLink> {
  const { openHouseholdLink } = await import('./household-link.ts')
  return openHouseholdLink(settings, signal)
}

/** The loop for Home Assistant out of the parts of the controller. */
import { homeAssistantIdentity } from '../../api/identity.ts'
import { version } from '../../daemon/process/version.ts'
import type { Loop } from '../../daemon/run.ts'
import { homeAssistantLoop } from '../integrations/home-assistant/home-assistant-loop.ts'
import type { HomeAssistantSettings } from '../integrations/home-assistant/home-assistant-settings.ts'
import { openHousehold } from '../integrations/household/open-household.ts'
import { listReleases } from '../releases/release-store.ts'
import type { OpenApi } from './open-api.ts'
import type { ControllerParts } from './parts.ts'

/** Buttons act by the API, as a user of their own. `dataDir` has the releases that are served. */
export function assembledHomeAssistant(
  { shared, usage, storage }: Pick<ControllerParts, 'shared' | 'usage' | 'storage'>,
  { api, dashboard, server }: OpenApi,
  settings: HomeAssistantSettings,
  dataDir: string,
): Loop {
  const { store, clock, log } = shared
  return homeAssistantLoop(
    {
      store,
      clock,
      log,
      usage,
      storage,
      version,
      open: openHousehold,
      releases: () => listReleases(dataDir),
      request: (request, signal) => api.local(homeAssistantIdentity, request, signal),
      pages: dashboard && `${server}/ui/`,
      random: Math.random,
    },
    settings,
  )
}

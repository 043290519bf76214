/** The dashboard out of the parts of the controller. Its files are built into a folder beside this program. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import { version } from '../../daemon/process/version.ts'
import { type Dashboard, openDashboard } from '../../dashboard/server/dashboard.ts'
import { dashboardFiles } from '../../dashboard/server/dashboard-files.ts'
import { dashboardFleet } from '../../dashboard/server/dashboard-fleet.ts'
import { nodeDoctor } from '../../dashboard/server/node-doctor.ts'
import type { ServiceAccountTokens } from '../apiserver/authentication/tokens/service-account-tokens.ts'
import type { Authorizer } from '../apiserver/handlers/authorizer.ts'
import { offeredCards, offeredFolderName } from '../cards/offered/offered-cards.ts'
import type { ControllerConfiguration } from '../configuration/configuration.ts'
import type { OwnCertificates } from '../own-certificates/own-certificates.ts'
import type { SessionBoard } from '../sessions/session-board.ts'
import type { RevocationList } from '../store/revocations.ts'
import type { Store } from '../store/store.ts'
import type { UsageBoard } from '../usage/usage-board.ts'

export type DashboardParts = {
  readonly shared: { readonly store: Store; readonly clock: Clock; readonly log: Log }
  readonly admission: { readonly commonNameOf: (request: string) => string | undefined }
  readonly access: Authorizer
  readonly tokens: ServiceAccountTokens
  readonly revocations: RevocationList
  readonly own: Pick<OwnCertificates, 'authority'>
  readonly usage: UsageBoard
  readonly sessions: SessionBoard
}

/** `serverUrl`: `https://HOST:PORT` as other machines reach the API; undefined until its port is open. */
export function assembledDashboard(
  { shared, admission, access, tokens, revocations, own, usage, sessions }: DashboardParts,
  { alwaysSample }: ControllerConfiguration['dashboard'],
  dataDir: string,
  serverUrl: () => string | undefined,
): Dashboard {
  const { store, clock, log } = shared
  const { commonNameOf } = admission
  return openDashboard({
    store,
    clock,
    log,
    access,
    revocations,
    fleet: dashboardFleet({ store, clock, log, commonNameOf, access, usage, alwaysSample }),
    cards: offeredCards(join(dataDir, offeredFolderName), log),
    doctor: nodeDoctor({ sessions, clock }),
    files: dashboardFiles(fileURLToPath(new URL('dashboard', import.meta.url)), log),
    identifyAccount: async (token) => (await tokens.identify(token, [], clock.wallMs()))?.identity,
    authority: () => ({ trusted: own.authority().trusted, caHash: own.authority().hash, server: serverUrl() }),
    version,
  })
}

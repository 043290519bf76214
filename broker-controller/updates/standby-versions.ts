/** The order in which several controllers are updated: those that stand by first, and the leader last. */
import { decode } from '../../api/decode.ts'
import { object, text } from '../../api/schema.ts'
import type { ApiClient } from '../../daemon/api-client.ts'
import { releaseIn } from '../../daemon/process/version.ts'

/** A controller that stands by. `version` undefined: it does not answer. */
export type StandbyVersion = { readonly server: string; readonly version: string | undefined }

const VersionSchema = object({ gitVersion: text })
/** For one controller: one whose machine is off must not delay the update for long. */
const answerMs = 5_000

/**
 * Why this controller, which leads, must not run `version` yet: another one of these runs a different version. One that does not answer
 * is not waited for: it may be gone for good.
 */
export function whyLeaderWaits(version: string, standbys: readonly StandbyVersion[]): string | undefined {
  const others = standbys.filter((one) => one.version !== undefined && one.version !== version)
  if (others.length === 0) return undefined
  const named = others.map(({ server, version: runs }) => `${server} (${runs})`).join(', ')
  return `This controller leads, and others do not run ${version} yet: install it there first: ${named}. With --force it is installed here all the same`
}

/** `servers`: `https://HOST:PORT` of each, without the leader. `client`: for the API of one of them. Never rejects. */
export async function standbyVersions(
  servers: readonly string[],
  client: (url: string) => Pick<ApiClient, 'get'>,
): Promise<readonly StandbyVersion[]> {
  return Promise.all(servers.map(async (server) => ({ server, version: await versionOf(client(server)) })))
}

/** Each controller answers with its own version. */
async function versionOf(client: Pick<ApiClient, 'get'>): Promise<string | undefined> {
  const answer = await client.get('/version', AbortSignal.timeout(answerMs)).catch(() => undefined)
  const decoded = decode(VersionSchema, answer?.body)
  return decoded.ok ? releaseIn(decoded.value.gitVersion) : undefined
}

/** Docker's version and settings, read once over its socket, on a machine that may not have it. */

import { request } from 'node:http'
import { decode } from '../../../api/decode.ts'
import { bool, object, optional, text } from '../../../api/schema.ts'
import { parseJson } from '../../../api/text/json.ts'
import { TooLate, withDeadline } from '../../../daemon/deadline.ts'
import { isDenied, isMissing } from '../../../daemon/errors.ts'
import type { DockerFacts, DockerSilent } from '../docker.ts'

const VersionSchema = object({ Version: text })
const InfoSchema = object({
  Driver: optional(text),
  CgroupDriver: optional(text),
  CgroupVersion: optional(text),
  LiveRestoreEnabled: optional(bool),
  DockerRootDir: optional(text),
  FirewallBackend: optional(object({ Driver: optional(text) })),
})

const answerMs = 3_000

export async function askDocker(socketPath: string): Promise<DockerFacts | DockerSilent> {
  try {
    const [versionBody, infoBody] = await withDeadline(answerMs, undefined, (signal) =>
      Promise.all([get(socketPath, '/version', signal), get(socketPath, '/info', signal)]),
    )
    const [version, info] = [decode(VersionSchema, versionBody), decode(InfoSchema, infoBody)]
    if (!version.ok || !info.ok) return 'refuses'
    const { Driver, CgroupDriver, CgroupVersion, LiveRestoreEnabled, DockerRootDir, FirewallBackend } = info.value
    return {
      version: version.value.Version,
      storageDriver: Driver ?? 'an unknown driver',
      cgroupDriver: CgroupDriver ?? 'an unknown driver',
      cgroupVersion: CgroupVersion ?? '1',
      liveRestore: LiveRestoreEnabled ?? false,
      rootDirectory: DockerRootDir ?? '/var/lib/docker',
      firewallBackend: FirewallBackend?.Driver,
    }
  } catch (error) {
    return error instanceof TooLate ? 'hangs' : silenceOf(error)
  }
}

function silenceOf(error: unknown): DockerSilent {
  if (isMissing(error)) return 'absent'
  return isDenied(error) ? 'denied' : 'refuses'
}

function get(socketPath: string, path: string, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, signal, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      response.on('error', reject)
      response.on('end', () => resolve(parseJson(body)))
    })
    asked.on('error', reject)
    asked.end()
  })
}

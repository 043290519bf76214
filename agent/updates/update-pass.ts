/** One pass of the updater: it downloads the release that the controller wants, and installs it on trial. */
import type { AgentRelease } from '../../api/node/agent-update.ts'
import { storyOf } from '../../daemon/log.ts'
import type { Release } from '../../daemon/updates/update-state.ts'
import type { DownloadRules } from './download-allowance.ts'
import type { FetchOutcome } from './fetch-release.ts'
import type { UpdateFiles } from './update-manager.ts'
import type { UpdateNote } from './update-report.ts'

export interface UpdatePassNeeds {
  readonly files: Pick<UpdateFiles, 'state' | 'wanted'> & {
    saveNote(note: UpdateNote | undefined): Promise<void>
  }
  /** Version of the package. */
  readonly base: Pick<Release, 'version' | 'sequence'>
  fetch(release: AgentRelease, rules: DownloadRules): Promise<FetchOutcome>
  /** Puts the release in the folder on trial, and starts it. */
  install(from: string): Promise<string>
  /** All that was downloaded. */
  removeDownloads(): Promise<void>
}

/** What was done, for the log. Failures are noted for the report: the next pass tries again. */
export async function updatePass(needs: UpdatePassNeeds): Promise<string> {
  const { files } = needs
  const wanted = await files.wanted()
  if (wanted === undefined) return settled(needs, 'No release is wanted')
  const { release, rules } = wanted
  const done = await whyNothing(needs, release)
  if (done !== undefined) return settled(needs, done)
  const note = async (outcome: UpdateNote['outcome'], reason: string) => {
    await files.saveNote({ sequence: release.sequence, outcome, reason })
    return `Version ${release.version} is ${outcome}: ${reason}`
  }
  try {
    const fetched = await needs.fetch(release, rules)
    if (fetched.outcome !== 'fetched') return await note(fetched.outcome, fetched.reason)
    // The download may have taken days.
    if ((await files.wanted())?.release.digest !== release.digest) return await settled(needs, 'It is wanted no longer')
    return await settled(needs, await needs.install(fetched.from))
  } catch (error) {
    return note('waiting', storyOf(error))
  }
}

async function settled({ files, removeDownloads }: UpdatePassNeeds, what: string): Promise<string> {
  await removeDownloads()
  await files.saveNote(undefined)
  return what
}

/** Why the release is not downloaded; undefined: it is. */
async function whyNothing({ files, base }: UpdatePassNeeds, release: AgentRelease): Promise<string | undefined> {
  const { committed, trial, rejected } = await files.state()
  const { version, sequence } = release
  if (Math.max(base.sequence, committed?.sequence ?? 0) >= sequence)
    return `Version ${version} or a newer one is committed`
  if (trial !== undefined) return `Version ${trial.version} is on trial`
  return rejected.some((one) => one.version === version) ? `Version ${version} was rejected` : undefined
}

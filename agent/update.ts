/** Updates of the agent as a program of its own, which only the package brings: an update never replaces what starts and judges it. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { uptime } from 'node:os'
import { dirname } from 'node:path'
import { systemClock } from '../daemon/clock.ts'
import { openLog, storyOf } from '../daemon/log.ts'
import { printText, readArguments, type Values } from '../daemon/process/command-line.ts'
import { exitCode } from '../daemon/process/exit-code.ts'
import { version } from '../daemon/process/version.ts'
import type { KnownTime } from '../daemon/server-check.ts'
import { emptyArchive, type InstalledArchive, installedArchive } from '../daemon/updates/deltas/installed-archive.ts'
import { fileDisk } from '../daemon/updates/file-disk.ts'
import { installRelease } from '../daemon/updates/install-release.ts'
import { debianArchitecture, onlyInPackage, readBase, readKeys } from '../daemon/updates/package-files.ts'
import { admitRelease, type ReleaseMachine } from '../daemon/updates/release-manifest.ts'
import { commitTrial, committedVersion, prepareStart } from '../daemon/updates/start-version.ts'
import { watchTrial } from '../daemon/updates/trial-judge.ts'
import { judgeTrial, nothingSeen, type TrialHistory } from '../daemon/updates/trial-verdict.ts'
import { loadUpdateState, saveVerdict, type UpdateFolder, versionPath } from '../daemon/updates/update-folder.ts'
import { withUpdateLock } from '../daemon/updates/update-lock.ts'
import { updateStatusText } from '../daemon/updates/update-status.ts'
import { knownTimePath, timeFile } from './adapters/disk/time-file.ts'
import { containersEpoch, readAgentUnit, restartAgent } from './adapters/updates/agent-unit.ts'
import { releaseSource } from './adapters/updates/release-source.ts'
import { runningContainers, viewOfController } from './adapters/updates/trial-facts.ts'
import { downloadFolder, updateFiles } from './adapters/updates/update-files.ts'
import { updateDefaults, updateProgram } from './commands/update-table.ts'
import { likelyDate } from './health/clock.ts'
import { findIdentity } from './join/identity.ts'
import { keptServers } from './node/connection/controller-servers.ts'
import { agentStateNames } from './updates/agent-state.ts'
import { downloadAllowance, spentWith } from './updates/download-allowance.ts'
import { fetchRelease } from './updates/fetch-release.ts'
import { updatePass } from './updates/update-pass.ts'

type Given = Values<(typeof updateProgram)['options']>

/** Names the version on trial that was started last. systemd starts the judge only if it exists. */
const trialMark = '/run/bramble/agent-trial'
const lockFile = '/run/bramble/agent-update.lock'

const output = {
  stdout: (text: string) => void process.stdout.write(text),
  stderr: (text: string) => void process.stderr.write(text),
}
// What `start` prints to stdout is the folder.
const log = openLog({ level: 'info', format: 'journal', write: output.stderr })

async function main(argv: readonly string[]): Promise<number> {
  if (argv[0] === '--version') return printText({ want: 'help', text: `bramble-update ${version}\n` }, output)
  const line = readArguments(updateProgram, argv)
  if (line.want !== 'act') return printText(line, output)
  const { values, form, args } = line
  try {
    await mkdir(dirname(lockFile), { recursive: true, mode: 0o755 })
    switch (form) {
      case 'status':
        output.stdout(updateStatusText(await loadUpdateState(updatesOf(values)), await ownBase()))
        return exitCode.fine
      case 'start':
        return await start(values)
      case 'committed': {
        const updates = updatesOf(values)
        const release = await committedVersion(updates, await ownBase())
        if (release !== undefined) output.stdout(`${versionPath(updates, release)}\n`)
        return exitCode.fine
      }
      case 'judge':
        await judge(values)
        return exitCode.fine
      case 'install FOLDER':
        output.stdout(`${await install(values, args[0] ?? '')}\n`)
        return exitCode.fine
      case 'fetch':
        log.info(await fetchWanted(values))
        return exitCode.fine
    }
  } catch (error) {
    output.stderr(`bramble-update: ${storyOf(error)}\n`)
    return exitCode.failed
  }
}

function updatesOf(values: Given): UpdateFolder {
  return {
    disk: fileDisk,
    log,
    folder: updateDefaults.folder,
    dataFolder: values['data-dir'],
    names: agentStateNames,
  }
}

async function start(values: Given): Promise<number> {
  const updates = updatesOf(values)
  const release = await withUpdateLock(lockFile, async () => prepareStart(updates, await ownBase()))
  const { trial } = await loadUpdateState(updates)
  if (release !== undefined && release.digest === trial?.digest) await writeFile(trialMark, release.digest)
  else await rm(trialMark, { force: true })
  if (release !== undefined) output.stdout(`${versionPath(updates, release)}\n`)
  return exitCode.fine
}

async function judge(values: Given): Promise<void> {
  const updates = updatesOf(values)
  const dataDir = values['data-dir']
  const trialMs = (values['trial-seconds'] ?? usualTrialSeconds) * 1000
  const deafMs = (values['deaf-seconds'] ?? usualDeafSeconds) * 1000
  const times = { trialMs, deafMs, longestMs: longestOverTrial * (trialMs + deafMs) }
  const watch: Parameters<typeof watchTrial<typeof nothingSeen, TrialHistory>>[0] = {
    nothingSeen,
    judge: (history, seen, trial) => judgeTrial(history, seen, { ...times, ...trial }),
    loadState: () => loadUpdateState(updates),
    started: () => readFile(trialMark, 'utf8').catch(() => undefined),
    look: async (trialVersion: string) => ({
      unit: await readAgentUnit(),
      containers: await runningContainers(values['docker-socket']),
      epoch: await containersEpoch(),
      controller: await viewOfController(dataDir, trialVersion),
    }),
    saveVerdict: (verdict) => saveVerdict(updates, verdict),
    commit: () => withUpdateLock(lockFile, async () => commitTrial(updates, await ownBase())),
    restart: restartAgent,
  }
  await watchTrial(watch, Math.min(trialMs / 10, longestPauseMs), systemClock, log, stopping.signal)
  const { trial } = await loadUpdateState(updates)
  if (trial === undefined) await rm(trialMark, { force: true })
}

const usualTrialSeconds = 600
/** An agent that starts beside a controller is seen within seconds, and its lease is one of 40 s. */
const usualDeafSeconds = 300
const longestOverTrial = 4
const longestPauseMs = 10_000

/** Throws with the reason if the release is refused. */
async function install(values: Given, from: string): Promise<string> {
  const updates = updatesOf(values)
  await mkdir(updates.folder, { recursive: true, mode: 0o700 })
  const machine = await machineOf(values)
  const see = async () => ({
    wasConnected: (await viewOfController(values['data-dir'])) === 'sees',
    containers: [...((await runningContainers(values['docker-socket'])) ?? [])],
    epoch: await containersEpoch(),
  })
  const keys = await readKeys(updateDefaults.package)
  const release = await withUpdateLock(lockFile, () => installRelease({ from, updates, keys, machine, see }))
  const isStopped = values['no-restart'] || (await readAgentUnit()).state === 'stopped'
  if (isStopped) return `The trial of version ${release.version} begins with the next start of bramble-agent.`
  const isStarted = await restartAgent()
  const how = isStarted ? 'is on trial' : 'is on trial, and its first start failed'
  return `Version ${release.version} ${how}. 'bramble-update status' shows how the trial ends.`
}

async function machineOf({ force }: Given): Promise<ReleaseMachine> {
  const { bavail, bsize } = await statfs(updateDefaults.folder)
  return {
    program: 'bramble-agent',
    arch: debianArchitecture,
    runtimes: await readdir(updateDefaults.runtimes),
    base: await ownBase(),
    freeBytes: bavail * bsize,
    isForced: force,
  }
}

/** Downloads and installs what the controller wants. What was done. */
async function fetchWanted(values: Given): Promise<string> {
  const dataDir = values['data-dir']
  const updates = updatesOf(values)
  const downloads = downloadFolder(updates.folder)
  const files = updateFiles({ folder: updates.folder, package: updateDefaults.package, dataDir, log })
  const identity = (await findIdentity(dataDir))?.identity
  if (identity === undefined) return 'This machine has not joined a fleet'
  const knownTime = await knownTimeOf(dataDir)
  const { ca, certificate, key } = identity
  const servers = { urls: keptServers(identity).apiServers, ca, certificate, key, knownTime }
  const facts = async () => ({
    nowMs: dateOf(knownTime),
    uptimeMs: uptime() * 1000,
    spent: await files.spent(),
  })
  return updatePass({
    files,
    base: await ownBase(),
    removeDownloads: () => rm(downloads, { recursive: true, force: true }),
    async fetch(wanted, rules) {
      await mkdir(downloads, { recursive: true, mode: 0o700 })
      const spend = async (bytes: number) => files.saveSpent(spentWith(await facts(), bytes))
      const source = releaseSource(servers, wanted.digest)
      return fetchRelease({
        source: {
          async read(...range) {
            await spend(connectionBytes)
            return source.read(...range)
          },
        },
        folder: downloads,
        wanted,
        arch: debianArchitecture,
        keys: await readKeys(updateDefaults.package),
        admit: async (manifest) => admitRelease(manifest, await loadUpdateState(updates), await machineOf(values)),
        allowance: async () => downloadAllowance(rules, await facts()),
        spend,
        installed: () => installedArchives(updates),
        log,
      })
    },
    install: (from) => install(values, from),
  })
}

/** What the archives of the versions on this machine are, and the empty one, by which an archive is downloaded compressed. */
async function installedArchives(updates: UpdateFolder): Promise<readonly InstalledArchive[]> {
  const { committed } = await loadUpdateState(updates)
  const versions = [
    { folder: updateDefaults.package, leftOut: onlyInPackage },
    ...(committed === undefined ? [] : [{ folder: versionPath(updates, committed), leftOut: [] }]),
  ]
  const found: InstalledArchive[] = [emptyArchive]
  for (const one of versions)
    await installedArchive(fileDisk, one).then(
      (archive) => found.push(archive),
      (error: unknown) => log.warn('An installed version cannot be the base of a delta', { ...one, error }),
    )
  return found
}

/** A handshake of TLS with the certificates of both ends, and the headers of the request and of TCP. */
const connectionBytes = 6_000

/** The clock may be wrong. What it is at least is enough to refuse a certificate that has ended. */
async function knownTimeOf(dataDir: string): Promise<KnownTime> {
  const earliestMs = await timeFile(knownTimePath(dataDir)).read()
  return { isClockRight: () => false, earliestMs: () => earliestMs, learn: () => undefined }
}

function dateOf({ earliestMs }: KnownTime): number | undefined {
  const synchronized = existsSync('/run/systemd/timesync/synchronized') ? true : undefined
  return likelyDate({ wallMs: Date.now(), earliestMs: earliestMs(), synchronized, controller: undefined })
}

const ownBase = () => readBase(updateDefaults.package, 'bramble-agent')

const stopping = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => stopping.abort())

process.exit(await main(process.argv.slice(2)))

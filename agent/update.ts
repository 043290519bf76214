/** Updates of the agent as a program of its own, which only the package brings: an update never replaces what starts and judges it. */
import { mkdir, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { decode } from '../api/decode.ts'
import { integer, object, text } from '../api/schema.ts'
import { parseJson } from '../api/text/json.ts'
import { systemClock } from '../daemon/clock.ts'
import { openLog, storyOf } from '../daemon/log.ts'
import { printText, readArguments, type Values } from '../daemon/process/command-line.ts'
import { exitCode } from '../daemon/process/exit-code.ts'
import { version } from '../daemon/process/version.ts'
import { fileDisk } from '../daemon/updates/file-disk.ts'
import { type ReleaseKeys, readReleaseKeys } from '../daemon/updates/release-manifest.ts'
import { commitTrial, committedVersion, prepareStart } from '../daemon/updates/start-version.ts'
import { loadUpdateState, saveVerdict, type UpdateFolder, versionPath } from '../daemon/updates/update-folder.ts'
import { withUpdateLock } from '../daemon/updates/update-lock.ts'
import type { Release } from '../daemon/updates/update-state.ts'
import { containersEpoch, readAgentUnit, restartAgent } from './adapters/updates/agent-unit.ts'
import { runningContainers, viewOfController } from './adapters/updates/trial-facts.ts'
import { updateDefaults, updateProgram } from './commands/update-table.ts'
import { agentStateNames } from './updates/agent-state.ts'
import { installRelease } from './updates/install-release.ts'
import { type TrialTimes, watchTrial } from './updates/trial-judge.ts'
import { updateStatusText } from './updates/update-status.ts'

type Given = Values<(typeof updateProgram)['options']>
type Base = Pick<Release, 'version' | 'sequence'>

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
        output.stdout(updateStatusText(await loadUpdateState(updatesOf(values)), await readBase()))
        return exitCode.fine
      case 'start':
        return await start(values)
      case 'committed': {
        const updates = updatesOf(values)
        const release = await committedVersion(updates, await readBase())
        if (release !== undefined) output.stdout(`${versionPath(updates, release)}\n`)
        return exitCode.fine
      }
      case 'judge':
        await judge(values)
        return exitCode.fine
      case 'install FOLDER':
        return await install(values, args[0] ?? '')
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
  const release = await withUpdateLock(lockFile, async () => prepareStart(updates, await readBase()))
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
  const times: TrialTimes = {
    trialMs,
    deafMs,
    longestMs: longestOverTrial * (trialMs + deafMs),
    everyMs: Math.min(trialMs / 10, longestPauseMs),
  }
  const watch = {
    loadState: () => loadUpdateState(updates),
    started: () => readFile(trialMark, 'utf8').catch(() => undefined),
    look: async (trialVersion: string) => ({
      unit: await readAgentUnit(),
      containers: await runningContainers(values['docker-socket']),
      epoch: await containersEpoch(),
      controller: await viewOfController(dataDir, trialVersion),
    }),
    saveVerdict: (verdict: Parameters<typeof saveVerdict>[1]) => saveVerdict(updates, verdict),
    commit: () => withUpdateLock(lockFile, async () => commitTrial(updates, await readBase())),
    restart: restartAgent,
  }
  await watchTrial(watch, times, systemClock, log, stopping.signal)
  const { trial } = await loadUpdateState(updates)
  if (trial === undefined) await rm(trialMark, { force: true })
}

const usualTrialSeconds = 600
/** An agent that starts beside a controller is seen within seconds, and its lease is one of 40 s. */
const usualDeafSeconds = 300
const longestOverTrial = 4
const longestPauseMs = 10_000

async function install(values: Given, from: string): Promise<number> {
  const updates = updatesOf(values)
  await mkdir(updates.folder, { recursive: true, mode: 0o700 })
  const { bavail, bsize } = await statfs(updates.folder)
  const machine = {
    program: 'bramble-agent',
    arch: process.arch === 'x64' ? 'amd64' : process.arch,
    runtimes: await readdir(updateDefaults.runtimes),
    base: await readBase(),
    freeBytes: bavail * bsize,
    isForced: values.force,
  }
  const see = async () => ({
    wasConnected: (await viewOfController(values['data-dir'])) === 'sees',
    containers: [...((await runningContainers(values['docker-socket'])) ?? [])],
    epoch: await containersEpoch(),
  })
  const keys = await readKeys()
  const release = await withUpdateLock(lockFile, () => installRelease({ from, updates, keys, machine, see }))
  const isStopped = values['no-restart'] || (await readAgentUnit()).state === 'stopped'
  if (isStopped) {
    output.stdout(`The trial of version ${release.version} begins with the next start of bramble-agent.\n`)
    return exitCode.fine
  }
  const isStarted = await restartAgent()
  const how = isStarted ? 'is on trial' : 'is on trial, and its first start failed'
  output.stdout(`Version ${release.version} ${how}. 'bramble-update status' shows how the trial ends.\n`)
  return exitCode.fine
}

const BaseSchema = object({ version: text, sequence: integer })

async function readBase(): Promise<Base> {
  const path = join(updateDefaults.package, 'release.json')
  const decoded = decode(BaseSchema, parseJson(await readFile(path, 'utf8')))
  if (!decoded.ok) throw new Error(`${path} is damaged: run apt-get install --reinstall bramble-agent`)
  return decoded.value
}

/** Those of the operator, who may publish releases for an own fleet, else those of the package. */
async function readKeys(): Promise<ReleaseKeys> {
  for (const path of ['/etc/bramble/release-keys.json', join(updateDefaults.package, 'release-keys.json')]) {
    const written = await readFile(path, 'utf8').catch(() => undefined)
    if (written === undefined) continue
    const keys = readReleaseKeys(written)
    if (keys === undefined)
      throw new Error(`${path} is invalid: it needs a threshold and as many keys of minisign or more`)
    return keys
  }
  throw new Error('No keys of a publisher are installed. Write them to /etc/bramble/release-keys.json')
}

const stopping = new AbortController()
for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => stopping.abort())

process.exit(await main(process.argv.slice(2)))

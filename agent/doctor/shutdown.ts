/** Checks of a shutdown: how long pods have to stop, which file sets that, and whether the machine reboots by itself. */
import { type AptSettings, isTrue } from './apt-settings.ts'
import { type DoctorFinding, type Fix, ok, problem, unknown, warning } from './doctor-finding.ts'
import { type Assignment, spanSeconds } from './systemd-settings.ts'

export type ShutdownReading = {
  readonly hasLogind: boolean
  /** All values of `InhibitDelayMaxSec`, in the order in which systemd reads them. */
  readonly assignments: readonly Assignment[]
  /** The delay that logind grants; undefined where it does not answer. */
  readonly grantedSeconds: number | undefined
  readonly wantedSeconds: number
}

/** The default of logind. */
const defaultSeconds = 5
/**
 * The drop-in that `--fix` writes. Its name sorts after unattended-upgrades' file and before the one that the agent writes and
 * removes.
 */
export const delayDropIn = '/etc/systemd/logind.conf.d/zz-bramble.conf'
/** The drop-in that the agent writes for `shutdownGracePeriod` at each start. */
const agentDropIn = '/etc/systemd/logind.conf.d/zzz-bramble.conf'

export function shutdownDelay({
  hasLogind,
  assignments,
  grantedSeconds,
  wantedSeconds,
}: ShutdownReading): DoctorFinding {
  const check = 'shutdown-delay'
  if (!hasLogind) return unknown(check, 'systemd-logind is not installed, so pods are not waited for at shutdown')
  const valid = assignments.filter(({ value }) => spanSeconds(value) !== undefined)
  const winner = valid.at(-1)
  const configured = spanSeconds(winner?.value ?? '') ?? defaultSeconds
  const who = winner === undefined ? "logind's default, as no file sets it" : `set by ${winner.file}${over(valid)}`
  if (configured < wantedSeconds) {
    const fix = dropInFix(winner, assignments, wantedSeconds)
    return warning(
      check,
      `At shutdown pods have ${configured} s to end (${who}); ${wantedSeconds} s are wanted`,
      winner?.file === agentDropIn
        ? "Restart the agent, which writes that file: 'systemctl restart bramble-agent'"
        : fix === undefined
          ? `Set InhibitDelayMaxSec=${wantedSeconds} in ${winner?.file ?? delayDropIn}, which wins over any other`
          : `Put InhibitDelayMaxSec=${wantedSeconds} below [Login] in ${delayDropIn}, then 'systemctl kill -s HUP systemd-logind'`,
      fix && { fix },
    )
  }
  if (grantedSeconds !== undefined && Math.abs(grantedSeconds - configured) >= 1) {
    return warning(
      check,
      `At shutdown pods have ${grantedSeconds} s to end: logind has not yet read the setting of ${configured} s (${who})`,
      "Run 'systemctl kill -s HUP systemd-logind'",
      {
        fix: {
          summary: 'Make systemd-logind read its files again',
          steps: [{ kind: 'reload-logind' }],
          needsRestart: false,
        },
      },
    )
  }
  return ok(check, `At shutdown pods have ${configured} s to end (${who})`)
}

function over(valid: readonly Assignment[]): string {
  const losers = valid.slice(0, -1).map(({ file, value }) => `${file} (${value})`)
  return losers.length === 0 ? '' : `, which wins over ${losers.join(' and ')}`
}

function dropInFix(winner: Assignment | undefined, all: readonly Assignment[], seconds: number): Fix | undefined {
  const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)
  const isBeaten = winner?.file.includes('.conf.d/') && nameOf(winner.file) > nameOf(delayDropIn)
  // The doctor does not overwrite a file of that name that another program wrote.
  if (isBeaten || all.some(({ file }) => file === delayDropIn)) return undefined
  return {
    summary: `Write ${delayDropIn}, so that pods have ${seconds} s to end at shutdown, and make systemd-logind read it`,
    steps: [
      {
        kind: 'write',
        path: delayDropIn,
        content: `# Pods may take this long to end at shutdown. Named so that it wins over other files, as unattended-upgrades' is.\n[Login]\nInhibitDelayMaxSec=${seconds}\n`,
        mode: 0o644,
        instead: undefined,
      },
      { kind: 'reload-logind' },
    ],
    needsRestart: false,
  }
}

/** Automatic reboots by unattended-upgrades. Undefined settings: the machine has no apt. */
export function automaticRestart(settings: AptSettings | undefined): DoctorFinding {
  const check = 'automatic-restart'
  if (settings === undefined) return unknown(check, 'There is no apt here')
  const option = (name: string) => settings.get(`unattended-upgrade::${name}`)
  const restarts = option('automatic-reboot')
  if (!isTrue(restarts?.value)) return ok(check, 'The machine is not restarted by itself after upgrades')
  if (settings.get('apt::periodic::unattended-upgrade')?.value === '0') {
    return ok(check, 'Upgrades are not installed by themselves, so the machine is not restarted after them')
  }
  const at = option('automatic-reboot-time')
  const when = at === undefined || at.value === 'now' ? 'at once after an upgrade that needs it' : `at ${at.value}`
  return warning(
    check,
    `unattended-upgrades restarts the machine ${when} (${restarts?.file}); machines that are set alike go down together`,
    `Give each machine another Unattended-Upgrade::Automatic-Reboot-Time in ${(at ?? restarts)?.file}, or set Automatic-Reboot to "false" there`,
  )
}

export type UnitReading = {
  /** systemd's LoadState: `loaded`, `not-found`, `masked`. */
  readonly load: string
  readonly active: string
  /** `enabled`, `disabled`, `static` … */
  readonly file: string
  /** The watchdog interval of the unit (`WatchdogSec`); 0: none. */
  readonly watchdogSeconds: number
}

/** `pid`: of the agent that runs on the data directory, however it was started. */
export function agentUnit(
  unit: UnitReading | undefined,
  hasJoined: boolean,
  pid: number | undefined,
): readonly DoctorFinding[] {
  const check = 'agent-service'
  if (unit === undefined) {
    return [
      pid === undefined
        ? unknown(check, 'systemd does not answer, so the state of the unit bramble-agent is unknown')
        : warning(check, `The agent runs (process ${pid}), but systemd does not answer`, restarting),
    ]
  }
  if (unit.load === 'masked') {
    return [problem(check, 'The unit bramble-agent is masked', "Run 'systemctl unmask --now bramble-agent'")]
  }
  if (unit.load !== 'loaded') {
    const found = `There is no unit bramble-agent (${unit.load})`
    return [warning(check, pid === undefined ? found : `${found}; the agent runs as process ${pid}`, restarting)]
  }
  const state = agentState(check, unit, hasJoined)
  // systemd reports no watchdog for a unit that does not run.
  return unit.active === 'active' ? [state, watchdogOf(unit)] : [state]
}

const restarting = 'Install the package bramble-agent, or the unit in systemd/, so that the agent comes back by itself'

function agentState(check: string, { active, file }: UnitReading, hasJoined: boolean): DoctorFinding {
  if (hasJoined && active !== 'active' && active !== 'activating') {
    const remedy = "See 'journalctl -u bramble-agent', then run 'systemctl start bramble-agent'"
    return problem(check, `The unit bramble-agent is ${active}, so this machine is not a node now`, remedy)
  }
  if (file !== 'enabled') {
    const remedy = "Run 'systemctl enable bramble-agent'"
    return problem(
      check,
      `The unit bramble-agent is ${file}: it does not come back when the machine is restarted`,
      remedy,
    )
  }
  if (!hasJoined) return ok(check, 'The unit bramble-agent is enabled, and starts once this machine has joined')
  return ok(check, `The unit bramble-agent is enabled and ${active}`)
}

function watchdogOf({ watchdogSeconds }: UnitReading): DoctorFinding {
  const check = 'agent-watchdog'
  return watchdogSeconds > 0
    ? ok(check, `A hung agent is restarted after ${watchdogSeconds} s`)
    : warning(
        check,
        'A hung agent is not restarted',
        "Put WatchdogSec=60s below [Service] with 'systemctl edit bramble-agent'",
      )
}

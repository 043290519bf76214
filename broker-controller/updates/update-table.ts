/** The command bramble-controller-update with its options: read, checked, explained and completed from this row. */
import type { Command } from '../../daemon/process/command.ts'
import { defaultDataDir } from '../commands/command-table.ts'

/** Places of the updates of the controller, and of what its package contains. */
export const controllerUpdateDefaults = {
  folder: '/var/lib/bramble/updates/controller',
  package: '/usr/lib/bramble-controller',
  runtimes: '/usr/lib/bramble-runtime',
} as const

/** Names the version on trial that was started last. systemd starts the judge only if it exists. */
export const controllerTrialMark = '/run/bramble-controller/trial'

export const controllerUpdateProgram = {
  name: 'bramble-controller-update',
  about: 'installs releases of the controller, on trial',
  text: `Install a release of bramble-controller beside that of the package, and run it on trial, after a backup: it is committed when it has worked for
--trial-seconds with the nodes that were connected before, and else taken back. On trial it leaves the format of the store as it is. Nodes
keep running their pods. Of several controllers update those that stand by first, one after the other, and the leader last: it refuses before. Needs root.`,
  forms: {
    status: 'show which version runs, and how the last trial ended',
    'install FOLDER': 'try the release in FOLDER: release.json, its signatures, and the archive for this machine',
    start: 'for bramble-controller.service: print the folder of the version to start',
    committed: 'the same where start fails: print the folder of the committed version, and change nothing',
    judge: 'for bramble-controller-trial.service: watch the version on trial until it is committed or taken back',
  },
  options: {
    'trial-seconds': { value: 'S', help: 'with judge: how long it must work', range: [5, 86_400], defaultText: '600' },
    'idle-seconds': {
      value: 'S',
      help: 'with judge: how long it may run without working',
      range: [5, 86_400],
      defaultText: '300',
    },
    force: {
      help: 'with install: also a version that is older than the committed one or was rejected, and on a leader before the others',
    },
    'no-restart': { help: 'with install: the trial begins with the next start of the controller' },
    'data-dir': { value: 'DIR', help: 'data directory of the controller', default: defaultDataDir },
    version: { help: 'print the version' },
  },
  end: 'Exit status: 0 done; 1 failed or refused; 64 wrong usage.',
} as const satisfies Command

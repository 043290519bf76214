/** The configuration files of systemd and apt, read as these programs read them. */
import { test } from 'tap'
import { aptSettings, isTrue } from './apt-settings.ts'
import { assignmentsOf, inOrder, spanSeconds } from './systemd-settings.ts'

test('drop-ins are read by their names, whatever their folder, and a folder hides files of later ones', async (t) => {
  t.same(
    inOrder(
      ['/usr/lib/systemd/logind.conf', '/etc/systemd/logind.conf'],
      [
        '/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf',
        '/usr/lib/systemd/logind.conf.d/50-delay.conf',
        '/etc/systemd/logind.conf.d/50-delay.conf',
        '/run/systemd/logind.conf.d/99-kubelet.conf',
        '/etc/systemd/logind.conf.d/zz-bramble.conf',
      ],
    ),
    [
      '/etc/systemd/logind.conf',
      '/etc/systemd/logind.conf.d/50-delay.conf',
      '/run/systemd/logind.conf.d/99-kubelet.conf',
      '/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf',
      '/etc/systemd/logind.conf.d/zz-bramble.conf',
    ],
  )
  t.same(inOrder([], []), [])
})

test('a setting counts in its section only, the last in a file wins, and comments do not count', async (t) => {
  const files = [
    {
      path: '/a',
      content: '#InhibitDelayMaxSec=1\n[Login]\n;InhibitDelayMaxSec=2\nInhibitDelayMaxSec = 3\nInhibitDelayMaxSec=4\n',
    },
    { path: '/b', content: '[Other]\nInhibitDelayMaxSec=5\n[Login]\nKillUserProcesses=no\n' },
    { path: '/c', content: '[Login]\r\nInhibitDelayMaxSec=6\r\n' },
  ]
  t.same(assignmentsOf(files, 'Login', 'InhibitDelayMaxSec'), [
    { file: '/a', value: '4' },
    { file: '/c', value: '6' },
  ])
})

test("systemd's spans of time", async (t) => {
  const spans: readonly (readonly [string, number | undefined])[] = [
    ['30', 30],
    ['30s', 30],
    ['1min 30s', 90],
    ['5m', 300],
    ['2 hours', 7200],
    ['500ms', 0.5],
    ['infinity', Number.POSITIVE_INFINITY],
    ['', undefined],
    ['soon', undefined],
    ['3 parsecs', undefined],
  ]
  for (const [text, seconds] of spans) t.equal(spanSeconds(text), seconds, text)
})

test("apt's files: blocks and long names, comments, and the last file wins", async (t) => {
  const settings = aptSettings([
    {
      path: '/etc/apt/apt.conf.d/50unattended-upgrades',
      content: `// Automatically reboot
Unattended-Upgrade::Origins-Pattern { "origin=Debian,label=Debian"; // all of it
  "a//b";
};
//Unattended-Upgrade::Automatic-Reboot "false";
Unattended-Upgrade { Automatic-Reboot "true"; /* at
night */ Automatic-Reboot-Time "02:00"; };
# Unattended-Upgrade::Automatic-Reboot-Time "03:00";`,
    },
    { path: '/etc/apt/apt.conf.d/90local', content: 'unattended-upgrade::automatic-reboot-time "04:00";\n' },
  ])
  t.same(settings.get('unattended-upgrade::automatic-reboot'), {
    value: 'true',
    file: '/etc/apt/apt.conf.d/50unattended-upgrades',
  })
  t.same(settings.get('unattended-upgrade::automatic-reboot-time'), {
    value: '04:00',
    file: '/etc/apt/apt.conf.d/90local',
  })
  t.same(['true', 'YES', '1', 'false', '0', undefined].map(isTrue), [true, true, true, false, false, false])
})

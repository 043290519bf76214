import { test } from 'tap'
import { type FirewallReading, firewallFinding } from './docker-firewall.ts'

/** As Docker 20.10 and later writes them. */
const whole: FirewallReading = {
  networks: [
    { name: 'bridge', subnets: ['172.17.0.0/16'] },
    { name: 'bramble-pi-1', subnets: ['172.18.0.0/16'] },
  ],
  nat: [
    '-P POSTROUTING ACCEPT',
    '-N DOCKER',
    '-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER',
    '-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE',
    '-A POSTROUTING -s 172.18.0.0/16 ! -o br-1 -j MASQUERADE',
  ],
  filter: ['-P FORWARD DROP', '-N DOCKER-USER', '-A FORWARD -j DOCKER-USER', '-A FORWARD -o docker0 -j DOCKER'],
  isSwitchedOff: false,
  liveRestore: true,
}
const flushed = ['-P PREROUTING ACCEPT', '-P INPUT ACCEPT', '-P OUTPUT ACCEPT', '-P POSTROUTING ACCEPT']
const found = (changes: Partial<FirewallReading>) => firewallFinding({ ...whole, ...changes })

test('with the rules of Docker there is no problem', async (t) => {
  t.match(found({}), { check: 'docker-firewall', verdict: 'ok' })
  const byHand = [...flushed, '-N DOCKER', '-A POSTROUTING -o eth0 -j MASQUERADE']
  t.match(found({ nat: byHand }), { verdict: 'ok' }, 'a rule for all addresses')
})

test('a flushed table nat is a problem that names the subnets, the cause and the remedy', async (t) => {
  t.match(found({ nat: flushed }), {
    verdict: 'problem',
    found:
      /no MASQUERADE rule for 172\.17\.0\.0\/16 \(bridge\), 172\.18\.0\.0\/16 \(bramble-pi-1\), so pods .* no chain DOCKER .*flushed/,
    remedy: /'systemctl restart docker', which writes them again \(pods keep running\)/,
  })
  t.match(found({ nat: flushed, liveRestore: false }), { remedy: /pods restart, as live-restore is off/ })
})

test('one network without its rule is a problem, and rules for other packets do not count', async (t) => {
  const others = [
    ...(whole.nat ?? []).filter((rule) => !rule.includes('-s 172.18.')),
    '-A POSTROUTING -s 172.18.0.2/32 -d 172.18.0.2/32 -p tcp -m tcp --dport 80 -j MASQUERADE',
    '-A POSTROUTING -o br-1 -m addrtype --src-type LOCAL -j MASQUERADE',
  ]
  const finding = found({ nat: others })
  t.match(finding, { verdict: 'problem', found: /no MASQUERADE rule for 172\.18\.0\.0\/16 \(bramble-pi-1\), so/ })
  t.notMatch(finding, { found: /172\.17/ })
})

test('a flushed table filter whose policy stays DROP is a problem', async (t) => {
  const policy = ['-P FORWARD DROP']
  t.match(found({ filter: policy }), { verdict: 'problem', found: /FORWARD drops packets/ })
  t.match(found({ filter: ['-P FORWARD ACCEPT'] }), { verdict: 'ok' })
})

test('a Docker that writes no rules is a warning unless the machine translates addresses itself', async (t) => {
  const off = { isSwitchedOff: true, filter: ['-P FORWARD ACCEPT'] }
  t.match(found({ ...off, nat: flushed }), { verdict: 'warning', found: /"iptables": false/ })
  t.match(found({ ...off, nat: [...flushed, '-A POSTROUTING -o eth0 -j MASQUERADE'] }), { verdict: 'ok' })
})

test('what cannot be read is unknown', async (t) => {
  t.match(found({ nat: undefined, filter: undefined }), { verdict: 'unknown', remedy: /sudo/ })
  t.match(found({ networks: undefined }), { verdict: 'unknown' })
})

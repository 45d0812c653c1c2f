// With its telemetry switched off, promptfoo still reports that it is off. Here its hosts are not found, so nothing is sent.
import dns from "node:dns";

const lookup = dns.lookup;
dns.lookup = (host, ...rest) => {
  if (!/(^|\.)promptfoo\.(app|dev)$/.test(host)) return lookup(host, ...rest);
  const error = Object.assign(new Error(`${host} is switched off by quiet.mjs`), { code: "ENOTFOUND", hostname: host });
  process.nextTick(rest.at(-1), error);
};

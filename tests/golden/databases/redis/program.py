import os
REDIS = int(os.environ.get("REDIS_PORT", "6379"))
import redis, asyncio, redis.asyncio as ra, sys
r=redis.Redis(port=REDIS, db=1, health_check_interval=1)
r.flushdb()
print(r.set("a",1), r.get("a"), r.incr("a"), r.get("nope"), r.set("bin", b"\x00\xff"), r.get("bin"))
print(r.hset("h", mapping={"x":1,"y":"z"}), r.hgetall("h"), r.lpush("l",1,2,3), r.lrange("l",0,-1), r.sadd("s","a"), r.smembers("s"))
with r.pipeline() as p:
    p.set("p",1); p.incr("p"); p.get("p"); print(p.execute())
with r.pipeline(transaction=False) as p:
    p.get("p"); p.lpush("p",1); p.get("a"); print(p.execute(raise_on_error=False))
try: r.lpush("a",1)
except redis.ResponseError as e: print(type(e), e)
s=r.register_script("return {KEYS[1],ARGV[1],redis.call('get',KEYS[1])}"); print(s(keys=["a"],args=["q"]))
with r.pipeline() as p:
    p.watch("a"); v=int(p.get("a")); p.multi(); p.set("a",v+1); print(p.execute())
print(r.ttl("a"), r.expire("a",100), r.zadd("z",{"m":1.5}), r.zrange("z",0,-1,withscores=True), r.info("server")["redis_mode"], r.scan())
print(r.xadd("st",{"f":"v"},id="1-1"), r.xrange("st"))
d=redis.Redis(port=REDIS, db=1, decode_responses=True); print(d.get("a"), d.hgetall("h"), d.lrange("l",0,-1))
r3=redis.Redis(port=REDIS, protocol=3, db=1); print(r3.hgetall("h"), r3.zrange("z",0,-1,withscores=True), r3.smembers("s"))
try: redis.Redis(port=1, retry=None).get("x")
except redis.ConnectionError as e: print(type(e).__name__)
import time; time.sleep(1.2); print(r.get("a"))
async def main():
    c=ra.Redis(port=REDIS, db=1); 
    print(await c.get("a"))
    async with c.pipeline() as p: p.set("k",1); p.get("k"); print(await p.execute())
    out=[]
    async def one(i):
        await c.set(f"k{i}", i); x=await c.incr("cnt"); out.append(i); return await c.get(f"k{i}")
    print(await asyncio.gather(*[one(i) for i in range(10)])); print(out)
    try:
        async with asyncio.timeout(0.2): await c.blpop("never", timeout=3)
    except TimeoutError: print("to")
    print(await c.get("k")); await c.aclose()
if "uv" in sys.argv:
    import uvloop; uvloop.run(main())
else: asyncio.run(main())
